package transport

// InFlight is the room of a lane.
const InFlight = inFlight

// NewLanesOf returns lanes with other room.
func NewLanesOf(over Transport, inFlight int) *Lanes {
	l := NewLanes(over)
	l.inFlight = inFlight
	return l
}
