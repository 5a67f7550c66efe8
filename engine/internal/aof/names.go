package aof

import (
	"fmt"
	"strings"
)

// Names says what the files are called. The fields are those of redis.conf.
type Names struct {
	Folder string // appenddirname, below the data folder
	File   string // appendfilename, which the names of all files begin with
}

// DefaultNames are those of Redis.
var DefaultNames = Names{Folder: "appendonlydir", File: "appendonly.aof"}

const (
	tempPrefix     = "temp-"
	manifestSuffix = ".manifest"
)

// in is the path of a file in the folder.
func (n Names) in(file string) string { return n.Folder + "/" + file }

// Manifest is the name of the manifest in the folder.
func (n Names) Manifest() string { return n.File + manifestSuffix }

// unsynced is the file whose presence says that a sync has failed: see markUnsynced.
func (n Names) unsynced() string { return n.File + ".unsynced" }

func (n Names) tempManifest() string { return tempPrefix + n.Manifest() }

func (n Names) incr(seq int64) string { return fmt.Sprintf("%s.%d.incr.aof", n.File, seq) }

func (n Names) base(seq int64, kind BaseKind) string {
	return fmt.Sprintf("%s.%d.base.%s", n.File, seq, kind)
}

// rewriteName begins the name of a base that is being written.
const rewriteName = "rewriteaof-"

func (n Names) tempBase(seq int64, kind BaseKind) string {
	return fmt.Sprintf("%s%s%d.%s", tempPrefix, rewriteName, seq, kind)
}

// BaseKind is what a base is written as.
type BaseKind string

// The kinds of base; with aof-use-rdb-preamble it is RDB.
const (
	BaseRDB BaseKind = "rdb"
	BaseAOF BaseKind = "aof"
)

// check says what is wrong with the names, as Redis would.
func (n Names) check() error {
	for _, name := range []string{n.Folder, n.File} {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
			return fmt.Errorf("aof: %q must be the name of a file, not a path", name)
		}
	}
	return nil
}
