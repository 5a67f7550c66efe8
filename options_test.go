package signalbox_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

// allOptions are the options of an acquisition, one use of each.
var allOptions = map[string]signalbox.AcquireOption{
	"TTL":           signalbox.TTL(time.Minute),
	"Weight":        signalbox.Weight(1),
	"Label":         signalbox.Label("label"),
	"OnWait":        signalbox.OnWait(func(signalbox.Waiting) {}),
	"Reentrant":     signalbox.Reentrant(),
	"LocalHandoff":  signalbox.LocalHandoff(2),
	"NoticeWaiters": signalbox.NoticeWaiters(),
	"LockDelay":     signalbox.LockDelay(time.Millisecond),
	"HoldAtLeast":   signalbox.HoldAtLeast(time.Millisecond),
	"WithReplicas":  signalbox.WithReplicas(1, time.Millisecond),
	"Pace":          signalbox.Pace(signalbox.Every(time.Millisecond), 1),
}

// everywhere tries an option in each place, by the name that the guide has for it.
func everywhere(t *testing.T, box *signalbox.Box, quorum *signalbox.Quorum) map[string]func(...signalbox.AcquireOption) error {
	t.Helper()
	ctx, name := t.Context(), func() string { return strings.ReplaceAll(t.Name(), "/", " ") }
	nothing := func(context.Context) error { return nil }
	return map[string]func(...signalbox.AcquireOption) error{
		"lock": func(options ...signalbox.AcquireOption) error {
			return box.Mutex(name()).Do(ctx, nothing, options...)
		},
		"side": func(options ...signalbox.AcquireOption) error {
			return box.RWMutex(name()+" rw").Write().Do(ctx, nothing, options...)
		},
		"group": func(options ...signalbox.AcquireOption) error {
			leases, err := box.AcquireAll(ctx, []signalbox.Request{box.Mutex(name()).Request()}, options...)
			if err == nil {
				err = leases.Release(ctx)
			}
			return err
		},
		"quorum": func(options ...signalbox.AcquireOption) error {
			return quorum.Mutex(name()).Do(ctx, nothing, options...)
		},
	}
}

func optionBoxes(t *testing.T) (*signalbox.Box, *signalbox.Quorum) {
	t.Helper()
	var boxes []*signalbox.Box
	for range 3 {
		box, err := embedded.Open("")
		must(t, err)
		t.Cleanup(func() { must(t, box.Close()) })
		boxes = append(boxes, box.Box)
	}
	return boxes[0], signalbox.NewQuorum(boxes...)
}

// TestEveryOptionHoldsWhereTheGuideSays holds all options against all places: each holds where its row of the guide's table
// says, and is refused by name elsewhere, with what it would hold in.
func TestEveryOptionHoldsWhereTheGuideSays(t *testing.T) {
	t.Parallel()
	box, quorum := optionBoxes(t)
	guide := guideOptions(t)
	for _, name := range acquireOptions(t) {
		option, known := allOptions[name]
		holds, written := guide[name]
		if !known || !written {
			t.Errorf("%s: in allOptions %v, in the table of docs/guide/options.md %v", name, known, written)
			continue
		}
		t.Run(name, func(t *testing.T) {
			for place, try := range everywhere(t, box, quorum) {
				err := try(signalbox.TTL(time.Minute), option)
				if strings.Contains(holds, place) {
					must(t, err)
					continue
				}
				says(t, err, signalbox.ErrInvalid, "acquire", "option "+name+" has no meaning in", "it has in a Mutex")
			}
		})
	}
}

func TestAnEmptyOptionIsRefused(t *testing.T) {
	t.Parallel()
	box, quorum := optionBoxes(t)
	for _, try := range everywhere(t, box, quorum) {
		says(t, try(signalbox.AcquireOption{}), signalbox.ErrInvalid, "acquire", "empty AcquireOption")
	}
}

// acquireOptions are the exported functions of the library that return an AcquireOption.
func acquireOptions(t *testing.T) (names []string) {
	t.Helper()
	files, err := os.ReadDir(".")
	must(t, err)
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.SkipObjectResolution)
		must(t, err)
		for _, declaration := range parsed.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() || f.Type.Results == nil {
				continue
			}
			if result, ok := f.Type.Results.List[0].Type.(*ast.Ident); ok && result.Name == "AcquireOption" {
				names = append(names, f.Name.Name)
			}
		}
	}
	if len(names) < len(allOptions) {
		t.Fatalf("only %v were found", names)
	}
	return names
}

// guideOptions is the last column of the guide's table, by option.
func guideOptions(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("docs/guide/options.md")
	must(t, err)
	rows := regexp.MustCompile("(?m)^\\| \\[?`(\\w+)`.*\\| ([a-z, ]+) \\|$").FindAllStringSubmatch(string(text), -1)
	holds := make(map[string]string)
	for _, row := range rows {
		holds[row[1]] = row[2]
	}
	return holds
}

func TestLabelsAndOwnersCanBeShown(t *testing.T) {
	t.Parallel()
	server := openBox(t, serveEngine(t))
	for what, text := range map[string]string{
		"257 bytes, may have 256": strings.Repeat("x", 257),
		"not UTF-8":               "\xff",
		"control characters":      "red \x1b[31m",
	} {
		_, err := server.Mutex("m").TryAcquire(t.Context(), signalbox.Label(text))
		says(t, err, signalbox.ErrInvalid, `acquire "m"`, "label", what)
		box, err := embedded.Open("", signalbox.Owner(text))
		must(t, err)
		_, err = box.Mutex("m").Acquire(t.Context())
		says(t, err, signalbox.ErrInvalid, `acquire "m"`, "owner", what)
		_, err = box.AcquireAll(t.Context(), []signalbox.Request{box.Mutex("m").Request()})
		says(t, err, signalbox.ErrInvalid, "acquire all", "owner", what)
		_, err = box.Inspect(t.Context(), "m")
		says(t, err, signalbox.ErrInvalid, `inspect "m"`, "owner", what)
		must(t, box.Close())
	}
	long := strings.Repeat("é", signalbox.MaxLabelBytes/2)
	lease, err := server.Mutex("m").TryAcquire(t.Context(), signalbox.Label(long))
	must(t, err)
	must(t, lease.Release(t.Context()))
}
