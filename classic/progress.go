package classic

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"github.com/redis/go-redis/v9"
)

const (
	// progressEvery is after how many lines the book commits.
	progressEvery = 1000
	// lineMax bounds a line, its end included.
	lineMax = 1 << 20
)

// The keys of Progress.
const (
	progressFile     = "progress:file"
	progressPosition = "progress:position"
)

// Progress reads log files into Redis so that a crash at any moment neither
// loses a line nor counts one twice, Redis in Action, 4.1.1: what the lines do
// and how far they go are written in the same MULTI/EXEC. Keys: the strings
// "progress:file" and "progress:position", the number of bytes done of it.
//
// Process reads the position (MGET), goes through the files in the order of
// their names from there, and after every 1000 lines and at the end of each file
// sends what has gathered, with the position (MSET).
//
// It promises that what stands in Redis is the work of exactly the lines before
// the position, whenever the reader or the server stops, even if the server
// comes back with an older state, as it does from a snapshot.
//
// It breaks:
//
//   - Two read at once: both begin at the same position, and each line counts
//     twice. Nothing is watched, and there is no lock.
//   - A file comes whose name sorts before the one that is being read, or lines
//     are added to such a file: nobody reads them.
//   - The last line is still being written: its beginning counts as a line, and
//     its rest as another.
type Progress struct{ Client }

// Process hands each line to handle, without its end, which queues commands on
// the pipe and must not execute it. It returns after the last file. An error of
// handle ends it and undoes what was not committed; a line of more than 1 MiB is
// an error.
func (p Progress) Process(ctx context.Context, files fs.FS, handle func(pipe redis.Pipeliner, line string) error) error {
	if err := p.check("progress", progressFile); err != nil {
		return err
	}
	if files == nil || handle == nil {
		return invalid("progress: give files, and what to do with a line")
	}
	current, position, err := p.read(ctx)
	if err != nil {
		return failed("progress", progressFile, err)
	}
	entries, err := fs.ReadDir(files, ".") // sorted by name
	if err != nil {
		return failed("progress", progressFile, err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || name < current {
			continue
		}
		if name != current {
			position = 0
		}
		if err := p.file(ctx, files, name, position, handle); err != nil {
			return failed("progress", name, err)
		}
	}
	return nil
}

// read is where the last one has stopped; "" and 0 if there was none.
func (p Progress) read(ctx context.Context) (file string, position int64, err error) {
	values, err := p.Redis.MGet(ctx, progressFile, progressPosition).Result()
	if err != nil || values[0] == nil || values[1] == nil {
		return "", 0, err
	}
	position, err = strconv.ParseInt(fmt.Sprint(values[1]), 10, 64)
	return fmt.Sprint(values[0]), position, err
}

// file goes through one file from a position.
func (p Progress) file(ctx context.Context, files fs.FS, name string, position int64, handle func(redis.Pipeliner, string) error) (err error) {
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.CopyN(io.Discard, f, position); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	lines := bufio.NewReaderSize(f, lineMax)
	pipe := p.Redis.TxPipeline()
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return fmt.Errorf("line %d from byte %d on: %w", n, position, err)
		}
		if len(line) > 0 {
			position += int64(len(line))
			if err := handle(pipe, string(trimEnd(line))); err != nil {
				return err
			}
		}
		if end || n%progressEvery == 0 {
			pipe.MSet(ctx, progressFile, name, progressPosition, position)
			if _, err := pipe.Exec(ctx); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

// trimEnd takes the end off a line.
func trimEnd(line []byte) []byte {
	if n := len(line); line[n-1] == '\n' {
		return line[:n-1]
	}
	return line
}
