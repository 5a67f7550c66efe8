// Package classic is the well-known lock, semaphore, queue and market
// algorithms on Redis as they were published, weaknesses included: to learn
// from, to compare with, and as patients of a race laboratory. Do not run them
// in production: each type says in its comment what it promises and under
// which schedule that breaks, and a test of that name shows it. docs/classic.md
// has all of it in one table, with what Signalbox does instead.
//
// Sources: Redis in Action by Josiah Carlson, chapters 4, 6 and 11, and the
// talk Distributed locks with Python and Redis by Sebastian Buczyński
// (EuroPython 2015). An algorithm here sends the commands of its source, in
// their order; where the source is not clear, or a slip of the pen, the comment
// says what was chosen. What is added is Go's: a context, errors instead of
// None, arguments that are checked before anything is sent.
//
//	lock.go             Lock: SETNX, EXPIRE, release by WATCH             6.2
//	lua_lock.go         LuaLock: the same in scripts                      11.2
//	semaphore.go        Semaphore: a ZSET by the clients' clocks          6.3.1
//	fair_semaphore.go   FairSemaphore: counter and owner ZSET             6.3.2 to 6.3.4
//	locked_semaphore.go LockedSemaphore: the fair one under a lock        6.3.5
//	lua_semaphore.go    LuaSemaphore                                      11.2
//	binary_lock.go      BinaryLock: a string, and a notice of its release talk
//	list_semaphore.go   ListSemaphore: a list of permits                  talk
//	queue.go            Queue and Worker: JSON in lists, by priority      6.4.1
//	delayed.go          delayed tasks in a ZSET                           6.4.2
//	chat.go             Chat: messages that wait for who is away          6.5.2
//	market.go           Market: trade by WATCH, under a lock, by a script 4.4, 6.2, 11.3
//	autocomplete.go     Guild: names by prefix, between two markers       6.1.2
//	token.go            Logins: one command at a time, or pipelined       4.5
//	progress.go         Progress: work and position in one transaction    4.1.1
//	sync.go             WaitForSync of a replica                          4.2
//
// Everything is a plain value and holds no state of its own: all state is on
// the server, and any number of goroutines may use one value. What a value
// reaches outside itself is its Client (client.go): the connection, the clock
// and the source of ids, so that whoever drives a client decides when each
// command is sent and what time it believes it is. The package knows go-redis
// and nothing of Signalbox.
//
// A transaction uses keys that have no common hash tag, as in the sources: a
// Redis Cluster refuses it. Give the client MaxRetries -1: a command that is
// repeated behind the algorithm's back is one more weakness.
//
// To add an algorithm: one file with a type that embeds Client, a comment with
// its promises and its breaks, a row in docs/classic.md, a test that it does
// its job, and one test for each way in which it breaks.
package classic
