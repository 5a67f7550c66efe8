//go:build !race

package cases

const underRace = false
