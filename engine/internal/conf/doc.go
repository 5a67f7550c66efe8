// Package conf is the configuration: the parameters of Redis 7.0 with their
// values, and the language of redis.conf. It is pure: whoever has files hands
// in their text.
//
// One table (table.go) says everything about every parameter: kind, bounds,
// default, and its role here, which may be none. CONFIG GET and SET, the reader
// of redis.conf, the --set flag and CONFIG REWRITE all derive from it. A
// parameter that means nothing here is known all the same: a redis.conf that is
// taken over as it is must load, and CONFIG GET of it answers as Redis does; but
// setting it to something else is refused, since a setting that does nothing is
// a lie. The few that clients set as a matter of course, and that change nothing
// they could see, are taken and kept (Role Idle).
//
// Settings holds the values. It does not know what they are for: who needs one
// reads it (Int, Bool, Text), or is called when it changes (OnChange).
//
// Files: table.go the parameters, param.go what a parameter is and how its value
// is read, rules.go the parameters with a language of their own, settings.go
// the values, file.go redis.conf, rewrite.go CONFIG REWRITE.
package conf
