// Package tidytest holds the rules of the house that linters cannot say, as
// tests: who may import whom, how long a file may be, that every package says
// what it is for, that every command and every script is documented.
package tidytest
