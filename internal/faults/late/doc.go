// Package late has what Acquire, Downgrade, Upgrade and a Barrier send arrive late, or be answered and not heard of.
package late
