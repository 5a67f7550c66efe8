package engine_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

const (
	docsFile = "internal/command/docs.txt"
	docsHead = "What COMMAND DOCS of Redis 7.0 says. Written by\n" +
		"go test ./engine -run CommandsAreDocumented -record; docs.go says how to read it.\n" + redisLicense
	redisLicense = `The texts are those of Redis.
Copyright (c) 2006-2020, Salvatore Sanfilippo, and contributors
All rights reserved.
Redistribution and use in source and binary forms, with or without
modification, are permitted provided that the following conditions are met:
* Redistributions of source code must retain the above copyright notice, this
  list of conditions and the following disclaimer.
* Redistributions in binary form must reproduce the above copyright notice,
  this list of conditions and the following disclaimer in the documentation
  and/or other materials provided with the distribution.
* Neither the name of Redis nor the names of its contributors may be used to
  endorse or promote products derived from this software without specific
  prior written permission.
THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND
ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE IMPLIED
WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT OWNER OR CONTRIBUTORS BE LIABLE FOR
ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES
(INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES;
LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON
ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT
(INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS
SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
`
)

// TestCommandsAreDocumentedAsRedisDoes compares COMMAND DOCS of every command
// and subcommand with a running Redis, under both protocols: redis-cli makes
// its hints of it. With -record it writes docs.txt first, which the binary has
// to be built with anew.
func TestCommandsAreDocumentedAsRedisDoes(t *testing.T) {
	redis := connectTo(t, difftest.Redis(t).Dial)
	if *record {
		recordDocs(t, redis)
		return
	}
	ours := connectTo(t, dial(t))
	names := do(t, ours, "COMMAND", "LIST")
	for _, proto := range []string{"2", "3"} {
		do(t, redis, "HELLO", proto)
		do(t, ours, "HELLO", proto)
		for _, name := range names.Elems {
			if slices.Contains(later, name.Text) {
				continue
			}
			want, got := docsOf(t, redis, name.Text), docsOf(t, ours, name.Text)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("RESP%s, %s (-redis +engine):\n%s", proto, name.Text, diff)
			}
		}
	}
}

// docsOf is what a server says of a command, without its subcommands, which
// have no order and are asked for by themselves.
func docsOf(t *testing.T, conn *difftest.Conn, name string) string {
	t.Helper()
	reply := do(t, conn, "COMMAND", "DOCS", name)
	if len(reply.Elems) != 2 {
		t.Fatalf("COMMAND DOCS %s: %v", name, reply)
	}
	doc := &reply.Elems[1]
	if last := len(doc.Elems) - 2; last >= 0 && doc.Elems[last].Text == "subcommands" {
		doc.Elems = doc.Elems[:last]
	}
	return reply.String()
}

// recordDocs writes the file that package command has the texts from.
func recordDocs(t *testing.T, redis *difftest.Conn) {
	t.Helper()
	sections := appendSections(nil, do(t, redis, "COMMAND", "DOCS").Elems)
	slices.Sort(sections)
	text := strings.Join(append([]string{docsHead}, sections...), "\n")
	if err := os.WriteFile(docsFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// factWords are the words of docs.txt for the facts that are one text and that
// no record has.
var factWords = map[string]string{
	"summary": "summary", "complexity": "complexity", "deprecated_since": "until", "replaced_by": "instead",
}

// appendSections adds a section for each command of a reply under RESP2, which
// is a list of names and facts by turns.
func appendSections(sections []string, docs []difftest.Value) []string {
	for i := 0; i+1 < len(docs); i += 2 {
		var text, arguments strings.Builder
		facts := docs[i+1].Elems
		fmt.Fprintln(&text, docs[i].Text)
		for j := 0; j+1 < len(facts); j += 2 {
			value := facts[j+1]
			switch name := facts[j].Text; name {
			case "doc_flags":
				for _, flag := range value.Elems {
					fmt.Fprintln(&text, "flag", flag.Text)
				}
			case "history":
				for _, change := range value.Elems {
					fmt.Fprintln(&text, "history", change.Elems[0].Text, change.Elems[1].Text)
				}
			case "arguments":
				writeArguments(&arguments, "-", value.Elems)
			case "subcommands":
				sections = appendSections(sections, value.Elems)
			default:
				if word, ok := factWords[name]; ok {
					fmt.Fprintln(&text, word, quoteSpace(value.Text))
				}
			}
		}
		sections = append(sections, text.String()+arguments.String())
	}
	return sections
}

// quoteSpace quotes a text that ends with a space, which an editor may remove.
func quoteSpace(text string) string {
	if strings.HasSuffix(text, " ") {
		return strconv.Quote(text)
	}
	return text
}

func writeArguments(w *strings.Builder, hyphens string, arguments []difftest.Value) {
	marks := map[string]string{"name": " ", "type": " ", "key_spec_index": " @", "token": " =", "since": " since:", "deprecated_since": " until:"}
	for _, a := range arguments {
		var inner []difftest.Value
		w.WriteString(hyphens)
		for j := 0; j+1 < len(a.Elems); j += 2 {
			value := a.Elems[j+1]
			switch name := a.Elems[j].Text; name {
			case "flags":
				for _, flag := range value.Elems {
					w.WriteString(" " + flag.Text)
				}
			case "arguments":
				inner = value.Elems
			default:
				w.WriteString(marks[name] + value.Text)
			}
		}
		w.WriteString("\n")
		writeArguments(w, hyphens+"-", inner)
	}
}
