package command

// The map, 360 degrees wide and a little over 170 high, is cut into halves again and
// again, in turn by longitude and by latitude. After so many steps of both there are
// 2^step cells on each side, and a cell's bits are those of its column and its row,
// interleaved, the column's first. The score of a place is the bits of its cell after 26
// steps, 0.6 m wide: so a cell of fewer steps is a range of scores.

const (
	longitudeMax = 180.0
	latitudeMax  = 85.05112878 // of the web's maps, which are squares
	poleLatitude = 90.0

	stepMax   = 26
	scoreBits = 2 * stepMax

	columnBits = 0xaaaaaaaaaaaaaaaa
	rowBits    = 0x5555555555555555
)

// cell is one cell; that of no steps is none.
type cell struct {
	bits uint64
	step int
}

// newCell is the cell of a place on a map up to this latitude. At the upper end of a side its
// bits are one more than there are, as in Redis.
func newCell(p position, northMost float64, step int) cell {
	row := (p.latitude + northMost) / (2 * northMost) * float64(uint64(1)<<step)
	column := (p.longitude + longitudeMax) / (2 * longitudeMax) * float64(uint64(1)<<step)
	return cell{spread(uint32(row)) | spread(uint32(column))<<1, step}
}

func (p position) cell(step int) cell { return newCell(p, latitudeMax, step) }

// score is the lowest score of the places in a cell.
func (c cell) score() uint64 { return c.bits << (scoreBits - 2*c.step) }

// scores are the scores of the places in a cell, end not included.
func (c cell) scores() (from, end float64) {
	return float64(c.score()), float64(cell{c.bits + 1, c.step}.score())
}

// move is the cell so many columns to the east and rows to the north, -1 to 1 each. It goes
// round the map at all its sides.
func (c cell) move(east, north int) cell {
	within := uint64(1)<<(2*c.step) - 1
	columns, rows := c.bits&columnBits, c.bits&rowBits
	switch east { // the bits between carry, or borrow
	case 1:
		columns = ((columns | rowBits) + 1) & columnBits & within
	case -1:
		columns = (columns - 2) & columnBits & within
	}
	switch north {
	case 1:
		rows = ((rows | columnBits) + 1) & rowBits & within
	case -1:
		rows = (rows - 1) & rowBits & within
	}
	return cell{columns | rows, c.step}
}

// bounds is a part of the map.
type bounds struct{ west, east, south, north float64 }

func (c cell) bounds() (b bounds) {
	side := float64(uint64(1) << c.step)
	column, row := collect(c.bits>>1), collect(c.bits)
	at := func(i uint32, most float64) float64 { return -most + float64(float64(i)/side*(2*most)) }
	return bounds{
		west: at(column, longitudeMax), east: at(column+1, longitudeMax),
		south: at(row, latitudeMax), north: at(row+1, latitudeMax),
	}
}

// positionOf is the middle of the cell of a score. Scores that no place has are somewhere
// at the sides of the map.
func positionOf(score float64) position {
	b := cell{toUint64(score), stepMax}.bounds()
	return position{
		longitude: min(max((b.west+b.east)/2, -longitudeMax), longitudeMax),
		latitude:  min(max((b.south+b.north)/2, -latitudeMax), latitudeMax),
	}
}

// toUint64 cuts off the fraction. What a uint64 cannot hold becomes what the machines that
// Redis runs on make of it.
func toUint64(f float64) uint64 {
	if f >= 1<<63 {
		return uint64(toInt64(f-1<<63)) ^ 1<<63
	}
	return uint64(toInt64(f))
}

// spread puts zeros between the bits of x.
func spread(x uint32) uint64 {
	b := uint64(x)
	b = (b | b<<16) & 0x0000ffff0000ffff
	b = (b | b<<8) & 0x00ff00ff00ff00ff
	b = (b | b<<4) & 0x0f0f0f0f0f0f0f0f
	b = (b | b<<2) & 0x3333333333333333
	return (b | b<<1) & rowBits
}

// collect is every second bit, from the lowest on.
func collect(b uint64) uint32 {
	b &= rowBits
	b = (b | b>>1) & 0x3333333333333333
	b = (b | b>>2) & 0x0f0f0f0f0f0f0f0f
	b = (b | b>>4) & 0x00ff00ff00ff00ff
	b = (b | b>>8) & 0x0000ffff0000ffff
	return uint32(b | b>>16)
}
