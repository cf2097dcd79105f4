// Package house holds the rules of the house as tests: which room may import
// which, how long a file may be, that everything exported is explained, that every
// row of the parity tables has the proof it names, and that every command in the
// manual does what the manual says.
package house
