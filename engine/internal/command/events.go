package command

import "github.com/signalbox-io/signalbox/engine/internal/keyspace"

// The events of the commands, by the names that Redis gives them. A handler
// hands its event to Touch together with the key; see keyspace.Event.
var (
	eventDel        = keyspace.Event{Class: keyspace.ClassGeneric, Name: "del"}
	eventExpire     = keyspace.Event{Class: keyspace.ClassGeneric, Name: "expire"}
	eventPersist    = keyspace.Event{Class: keyspace.ClassGeneric, Name: "persist"}
	eventRenameFrom = keyspace.Event{Class: keyspace.ClassGeneric, Name: "rename_from"}
	eventRenameTo   = keyspace.Event{Class: keyspace.ClassGeneric, Name: "rename_to"}
	eventMoveFrom   = keyspace.Event{Class: keyspace.ClassGeneric, Name: "move_from"}
	eventMoveTo     = keyspace.Event{Class: keyspace.ClassGeneric, Name: "move_to"}
	eventCopyTo     = keyspace.Event{Class: keyspace.ClassGeneric, Name: "copy_to"}

	eventRestore = keyspace.Event{Class: keyspace.ClassGeneric, Name: "restore"}

	eventSet         = keyspace.Event{Class: keyspace.ClassString, Name: "set"}
	eventAppend      = keyspace.Event{Class: keyspace.ClassString, Name: "append"}
	eventSetBit      = keyspace.Event{Class: keyspace.ClassString, Name: "setbit"}
	eventPFAdd       = keyspace.Event{Class: keyspace.ClassString, Name: "pfadd"}
	eventSetRange    = keyspace.Event{Class: keyspace.ClassString, Name: "setrange"}
	eventIncrBy      = keyspace.Event{Class: keyspace.ClassString, Name: "incrby"}
	eventIncrByFloat = keyspace.Event{Class: keyspace.ClassString, Name: "incrbyfloat"}

	eventLPush     = keyspace.Event{Class: keyspace.ClassList, Name: "lpush"}
	eventRPush     = keyspace.Event{Class: keyspace.ClassList, Name: "rpush"}
	eventLPop      = keyspace.Event{Class: keyspace.ClassList, Name: "lpop"}
	eventRPop      = keyspace.Event{Class: keyspace.ClassList, Name: "rpop"}
	eventLSet      = keyspace.Event{Class: keyspace.ClassList, Name: "lset"}
	eventLInsert   = keyspace.Event{Class: keyspace.ClassList, Name: "linsert"}
	eventLTrim     = keyspace.Event{Class: keyspace.ClassList, Name: "ltrim"}
	eventLRem      = keyspace.Event{Class: keyspace.ClassList, Name: "lrem"}
	eventSortStore = keyspace.Event{Class: keyspace.ClassList, Name: "sortstore"}

	eventSAdd        = keyspace.Event{Class: keyspace.ClassSet, Name: "sadd"}
	eventSRem        = keyspace.Event{Class: keyspace.ClassSet, Name: "srem"}
	eventSPop        = keyspace.Event{Class: keyspace.ClassSet, Name: "spop"}
	eventSInterStore = keyspace.Event{Class: keyspace.ClassSet, Name: "sinterstore"}
	eventSUnionStore = keyspace.Event{Class: keyspace.ClassSet, Name: "sunionstore"}
	eventSDiffStore  = keyspace.Event{Class: keyspace.ClassSet, Name: "sdiffstore"}

	eventHSet         = keyspace.Event{Class: keyspace.ClassHash, Name: "hset"}
	eventHDel         = keyspace.Event{Class: keyspace.ClassHash, Name: "hdel"}
	eventHIncrBy      = keyspace.Event{Class: keyspace.ClassHash, Name: "hincrby"}
	eventHIncrByFloat = keyspace.Event{Class: keyspace.ClassHash, Name: "hincrbyfloat"}

	eventZAdd             = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "zadd"}
	eventZIncr            = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "zincr"}
	eventZRem             = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "zrem"}
	eventZRemRangeByRank  = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "zremrangebyrank"}
	eventZRemRangeByScore = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "zremrangebyscore"}
	eventZRemRangeByLex   = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "zremrangebylex"}
	eventZPopMin          = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "zpopmin"}
	eventZPopMax          = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "zpopmax"}
	eventZRangeStore      = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "zrangestore"}
	eventZUnionStore      = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "zunionstore"}
	eventZInterStore      = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "zinterstore"}
	eventGeoSearchStore   = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "geosearchstore"}
	eventGeoRadiusStore   = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "georadiusstore"}
	eventZDiffStore       = keyspace.Event{Class: keyspace.ClassSortedSet, Name: "zdiffstore"}

	eventXAdd            = keyspace.Event{Class: keyspace.ClassStream, Name: "xadd"}
	eventXDel            = keyspace.Event{Class: keyspace.ClassStream, Name: "xdel"}
	eventXTrim           = keyspace.Event{Class: keyspace.ClassStream, Name: "xtrim"}
	eventXSetID          = keyspace.Event{Class: keyspace.ClassStream, Name: "xsetid"}
	eventGroupCreate     = keyspace.Event{Class: keyspace.ClassStream, Name: "xgroup-create"}
	eventGroupSetID      = keyspace.Event{Class: keyspace.ClassStream, Name: "xgroup-setid"}
	eventGroupDestroy    = keyspace.Event{Class: keyspace.ClassStream, Name: "xgroup-destroy"}
	eventConsumerCreated = keyspace.Event{Class: keyspace.ClassStream, Name: "xgroup-createconsumer"}
	eventConsumerDeleted = keyspace.Event{Class: keyspace.ClassStream, Name: "xgroup-delconsumer"}
)
