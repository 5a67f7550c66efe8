package classic_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/classic"
)

// logs are files of so many lines, each "hit".
func logs(lines ...int) fstest.MapFS {
	files := fstest.MapFS{}
	for i, n := range lines {
		files[fmt.Sprintf("%d.log", i)] = &fstest.MapFile{Data: []byte(strings.Repeat("hit\n", n))}
	}
	return files
}

// count makes an actor count the lines of files by their text.
func (a *actor) count(t *testing.T, files fs.FS) error {
	return classic.Progress{Client: a.Client}.Process(t.Context(), files, func(pipe redis.Pipeliner, line string) error {
		return pipe.HIncrBy(t.Context(), "count", line, 1).Err()
	})
}

func wantCount(t *testing.T, s *server, line, want string) {
	t.Helper()
	if got := s.admin.HGet(t.Context(), "count", line).Val(); got != want {
		t.Errorf("%q was counted %q times, want %q", line, got, want)
	}
}

func TestProgressCountsEachLineOnceWhereverTheReaderCrashes(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		files := logs(2500, 3) // committed at 1000, 2000, 2500 and 2503
		for crashAt := range 4 {
			for _, end := range []func(*act, string){(*act).crash, (*act).loseReply} {
				must(t, s.admin.FlushAll(t.Context()).Err())
				a, b := s.actor(t, "a"), s.actor(t, "b")
				reading := a.begin(t, func() error { return a.count(t, files) }).step("mget")
				for i, lines := range []int{1000, 1000, 500, 3} {
					commit := "multi " + strings.Repeat("hincrby ", lines) + "mset exec"
					if i == crashAt {
						end(reading, commit)
						break
					}
					reading.step(commit)
				}
				must(t, b.count(t, files))
				wantCount(t, s, "hit", "2503")
			}
		}
	})
}

func TestProgressGoesOnWhereItStopped(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		files := logs(2)
		must(t, a.count(t, files))
		must(t, a.count(t, files)) // nothing new
		wantCount(t, s, "hit", "2")
		files["0.log"].Data = append(files["0.log"].Data, "more\nhit"...)
		files["1.log"] = &fstest.MapFile{Data: []byte("more\n")}
		must(t, a.count(t, files))
		wantCount(t, s, "hit", "3")
		wantCount(t, s, "more", "2")
	})
}

func TestProgressKeepsNothingOfALineThatFails(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		refused := errors.New("refused")
		err := classic.Progress{Client: a.Client}.Process(t.Context(), logs(3), func(pipe redis.Pipeliner, line string) error {
			pipe.Incr(t.Context(), "n")
			return refused
		})
		wantErr(t, err, refused)
		s.wantNoKeys(t)
		if err := a.count(t, fstest.MapFS{"0.log": {Data: []byte(strings.Repeat("x", 1<<20+1))}}); err == nil {
			t.Error("a line without end is read")
		}
		s.wantNoKeys(t)
	})
}

func TestProgressOfTwoReadersCountsTwice(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		reading := a.begin(t, func() error { return a.count(t, logs(5)) }).step("mget")
		must(t, b.count(t, logs(5)))
		must(t, reading.finish())
		wantCount(t, s, "hit", "10")
	})
}

func TestProgressSkipsAFileThatComesLate(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		files := logs(1, 1)
		must(t, a.count(t, files))
		files["0.log"].Data = append(files["0.log"].Data, "late\n"...)
		files["00.log"] = &fstest.MapFile{Data: []byte("late\n")}
		must(t, a.count(t, files))
		wantCount(t, s, "hit", "2")
		wantCount(t, s, "late", "")
	})
}

func TestProgressCountsALineThatIsBeingWrittenAsTwo(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		must(t, a.count(t, fstest.MapFS{"0.log": {Data: []byte("hi")}}))
		must(t, a.count(t, fstest.MapFS{"0.log": {Data: []byte("hit\n")}}))
		wantCount(t, s, "hi", "1")
		wantCount(t, s, "t", "1")
	})
}
