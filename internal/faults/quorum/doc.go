// Package quorum has one of three servers of a quorum fail, while its lock is held and while it is asked for.
package quorum
