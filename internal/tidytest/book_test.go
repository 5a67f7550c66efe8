package tidytest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The guide in docs/book promises that nothing of Redis in Action was passed
// over. What there is to be found stands here, by the numbers of the book's
// tables and the names of its functions; that the guide's examples are true
// shows package engine, which plays them.

// bookTables are the commands of the book's tables.
var bookTables = map[string]string{
	"1.3":        "GET SET DEL",
	"1.4":        "RPUSH LRANGE LINDEX LPOP",
	"1.5":        "SADD SMEMBERS SISMEMBER SREM",
	"1.6":        "HSET HGET HGETALL HDEL",
	"1.7":        "ZADD ZRANGE ZRANGEBYSCORE ZREM",
	"3.1":        "INCR DECR INCRBY DECRBY INCRBYFLOAT",
	"3.2":        "APPEND GETRANGE SETRANGE GETBIT SETBIT BITCOUNT BITOP",
	"3.3":        "RPUSH LPUSH RPOP LPOP LINDEX LRANGE LTRIM",
	"3.4":        "BLPOP BRPOP RPOPLPUSH BRPOPLPUSH",
	"3.5":        "SADD SREM SISMEMBER SCARD SMEMBERS SRANDMEMBER SPOP SMOVE",
	"3.6":        "SDIFF SDIFFSTORE SINTER SINTERSTORE SUNION SUNIONSTORE",
	"3.7":        "HMGET HMSET HDEL HLEN",
	"3.8":        "HEXISTS HKEYS HVALS HGETALL HINCRBY HINCRBYFLOAT",
	"3.9":        "ZADD ZREM ZCARD ZINCRBY ZCOUNT ZRANK ZSCORE ZRANGE",
	"3.10":       "ZREVRANK ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZREMRANGEBYRANK ZREMRANGEBYSCORE ZINTERSTORE ZUNIONSTORE",
	"3.11":       "SUBSCRIBE UNSUBSCRIBE PUBLISH PSUBSCRIBE PUNSUBSCRIBE",
	"3.12":       "SORT",
	"3.13":       "PERSIST TTL EXPIRE EXPIREAT PTTL PEXPIRE PEXPIREAT",
	"3.7.2, 4.4": "WATCH MULTI EXEC UNWATCH DISCARD",
}

// bookListings are the functions of the book's listings, by the heading of the
// map under which they are looked for. Those of chapters 5 and 7 to 10, which
// are applications, are not listed one by one.
var bookListings = map[string]string{
	"Chapter 1": "article_vote post_article get_articles add_remove_groups get_group_articles",
	"Chapter 2": "check_token update_token clean_sessions add_to_cart clean_full_sessions cache_request schedule_row_cache cache_rows rescale_viewed can_cache",
	"Chapter 3": "publisher run_pubsub notrans trans update_token article_vote get_articles check_token add_to_cart",
	"Chapter 4": "process_logs wait_for_sync list_item purchase_item update_token update_token_pipeline benchmark_update_token",
	"Chapter 6": "add_update_contact remove_contact fetch_autocomplete_list find_prefix_range autocomplete_on_prefix join_guild leave_guild " +
		"list_item purchase_item acquire_lock purchase_item_with_lock release_lock acquire_lock_with_timeout acquire_semaphore release_semaphore " +
		"acquire_fair_semaphore release_fair_semaphore refresh_fair_semaphore acquire_semaphore_with_lock send_sold_email_via_queue " +
		"process_sold_email_queue worker_watch_queue worker_watch_queues execute_later poll_queue create_chat send_message " +
		"fetch_pending_messages join_chat leave_chat",
	"Chapter 11": "script_load acquire_lock_with_timeout release_lock acquire_semaphore refresh_semaphore autocomplete_on_prefix purchase_item_with_lock purchase_item",
	"Left out": "daily_country_aggregate copy_logs_to_redis process_logs_from_redis readlines readblocks readblocks_gz create_status " +
		"sharded_push_helper sharded_lpush sharded_rpush sharded_lpop sharded_rpop sharded_bpop_helper sharded_blpop sharded_brpop",
}

var (
	exampleBlock = regexp.MustCompile("(?ms)^```redis\n(.*?)^```")
	exampleLine  = regexp.MustCompile(`(?m)^\w*> ([A-Za-z]+)`)
	identifier   = regexp.MustCompile("`(classic|signalbox|autocomplete|queue)\\.([A-Z]\\w*(?:\\.[A-Z]\\w*)?)`")
	namedTest    = regexp.MustCompile("`(Test\\w+)`")
	shownExample = regexp.MustCompile("(?ms)^```go\n// (Example_book\\w+)\n(.*?)^```")
	pageLink     = regexp.MustCompile(`\]\([a-z0-9]+\.md(#[^)]*)?\)`)
)

func TestEveryCommandOfTheBookHasAnExample(t *testing.T) {
	shown := map[string]bool{}
	for _, path := range bookPages(t) {
		for _, block := range exampleBlock.FindAllStringSubmatch(read(t, path), -1) {
			for _, m := range exampleLine.FindAllStringSubmatch(block[1], -1) {
				shown[strings.ToUpper(m[1])] = true
			}
		}
	}
	rows := bookMap(t)["The tables of commands"]
	for table, commands := range bookTables {
		for _, command := range strings.Fields(commands) {
			if !shown[command] {
				t.Errorf("table %s: no example of %s", table, command)
			}
		}
		at := slices.IndexFunc(rows, func(row []string) bool { return row[0] == table })
		if at < 0 || strings.ReplaceAll(rows[at][1], "`", "") != commands || !pageLink.MatchString(rows[at][2]) {
			t.Errorf("the map has no row %s with %s and a link to their examples", table, commands)
		}
	}
}

func TestEveryListingOfTheBookIsOnTheMap(t *testing.T) {
	rows := bookMap(t)
	for heading, listings := range bookListings {
		for _, listing := range strings.Fields(listings) {
			found := 0
			for _, row := range rows[heading] {
				for _, cell := range row[:2] {
					found += strings.Count(cell, "`"+listing+"`")
				}
			}
			if found != 1 {
				t.Errorf("%s: %s is named %d times on the map, want once", heading, listing, found)
			}
		}
	}
	for _, row := range rows["Left out"] {
		if len(row) != 3 || len(row[2]) < 20 {
			t.Errorf("left out without a reason: %q", row)
		}
	}
	for _, chapter := range []string{"5", "7", "8", "9", "10"} {
		if !slices.ContainsFunc(rows["Left out"], func(row []string) bool { return row[0] == chapter }) {
			t.Errorf("the map does not say what became of chapter %s", chapter)
		}
	}
}

// TestCounterpartsOnTheMapAreTested: every row of a chapter or of the talk names
// what there is here, as Go or as a section with examples, and tests in files
// that speak of it. They run on Redis and on the engine.
func TestCounterpartsOnTheMapAreTested(t *testing.T) {
	files := testFiles(t)
	for heading, rows := range bookMap(t) {
		if !strings.HasPrefix(heading, "Chapter") && heading != "The talk" {
			continue
		}
		for _, row := range rows {
			if len(row) != 4 {
				t.Fatalf("%s: %q has no four columns", heading, row)
			}
			var text string
			for _, m := range namedTest.FindAllStringSubmatch(row[3], -1) {
				text += files[m[1]]
				if !runsOnBoth(files[m[1]], m[1]) {
					t.Errorf("%s: %s does not run on Redis and on the engine", heading, m[1])
				}
			}
			if text == "" {
				t.Errorf("%s: %s has no test that exists", heading, row[0])
			}
			counterparts := identifier.FindAllStringSubmatch(row[1], -1)
			if counterparts == nil && !pageLink.MatchString(row[1]) && !strings.Contains(row[1], "above") {
				t.Errorf("%s: %s has no counterpart", heading, row[0])
			}
			for _, m := range counterparts {
				if name := m[2][strings.LastIndex(m[2], ".")+1:]; !regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
					t.Errorf("%s: the tests of %s do not speak of %s", heading, row[0], m[0])
				}
			}
		}
	}
}

// runsOnBoth reports whether a test is one of the two that play the examples,
// or runs by way of onEach, onEachPair or onEachKind, as those of package classic do.
func runsOnBoth(file, test string) bool {
	_, body, _ := strings.Cut(file, "func "+test+"(")
	body, _, _ = strings.Cut(body, "\n}\n")
	return strings.HasPrefix(test, "TestBookExamplesOn") || regexp.MustCompile(`\bonEach(Pair|Kind)?\(`).MatchString(body)
}

func TestGoThatTheBookNamesExists(t *testing.T) {
	base, named := root(t), 0
	exported := map[string]map[string]bool{"signalbox": identifiers(t, base)}
	for _, name := range []string{"classic", "autocomplete", "queue"} {
		exported[name] = identifiers(t, filepath.Join(base, name))
	}
	for _, path := range bookPages(t) {
		for _, m := range identifier.FindAllStringSubmatch(read(t, path), -1) {
			named++
			if !exported[m[1]][m[2]] {
				t.Errorf("%s names %s, which does not exist", path, m[0])
			}
		}
	}
	if named < 50 {
		t.Errorf("only %d names found: has the guide moved?", named)
	}
}

// TestGoOfTheBookRuns: a block of Go that names an example is a part of that example.
func TestGoOfTheBookRuns(t *testing.T) {
	text := read(t, filepath.Join(root(t), "queue/example_book_test.go"))
	shown := map[string]bool{}
	for _, path := range bookPages(t) {
		for _, m := range shownExample.FindAllStringSubmatch(read(t, path), -1) {
			_, body, _ := strings.Cut(text, "func "+m[1]+"() {\n")
			body, _, _ = strings.Cut(body, "\n}\n")
			body = strings.ReplaceAll("\n"+body, "\n\t", "\n")
			if shown[m[1]] = true; !strings.Contains(body, "\n"+strings.TrimSpace(m[2])+"\n") {
				t.Errorf("%s shows %s otherwise than it runs", path, m[1])
			}
		}
	}
	if len(shown) != 4 {
		t.Errorf("the guide shows %d of the four examples of task queues", len(shown))
	}
}

func bookPages(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root(t), "docs/book/*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no pages found (%v)", err)
	}
	return paths
}

// bookMap reads the tables of the map: the cells of each row by the heading
// above them, heads left out.
func bookMap(t *testing.T) map[string][][]string {
	t.Helper()
	rows := map[string][][]string{}
	title, head := "", true
	text := fences.ReplaceAllString(read(t, filepath.Join(root(t), "docs/book/README.md")), "")
	for line := range strings.Lines(text) {
		switch m := heading.FindStringSubmatch(line); {
		case m != nil:
			title, head = m[1], true
		case strings.HasPrefix(line, "|---"):
			head = false
		case !strings.HasPrefix(line, "|"):
			head = true
		case !head:
			var row []string
			for _, cell := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
				row = append(row, strings.TrimSpace(cell))
			}
			rows[title] = append(rows[title], row)
		}
	}
	return rows
}

// testFiles maps each test to the text of its file.
func testFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	walk(t, root(t), "_test.go", func(path string) {
		text := read(t, path)
		for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
			files[m[1]] = text
		}
	})
	return files
}

// identifiers are a package's exported names; methods and fields as Type.Name.
func identifiers(t *testing.T, dir string) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiver(d) + "." + name
				}
				names[name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					addSpec(names, spec)
				}
			}
		}
	}
	return names
}

func addSpec(names map[string]bool, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			names[name.Name] = true
		}
	case *ast.TypeSpec:
		names[s.Name.Name] = true
		fields, ok := s.Type.(*ast.StructType)
		if !ok {
			return
		}
		for _, field := range fields.Fields.List {
			for _, name := range field.Names {
				names[s.Name.Name+"."+name.Name] = true
			}
		}
	}
}
