package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-io/signalbox/queue"
)

// The pages are rendered here, by templates, and stay current by server-sent events: each is a new <main>, which a few lines
// of script put in the place of the old one. Whoever has no script gets a page that loads itself again.
//
// Other sites cannot post here: browsers say where a form comes from, and http.CrossOriginProtection looks. Nor can a name
// that somebody has pointed at this machine be used to read a page (onlyHere).

//go:embed pages
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"clock": clock, "plural": plural,
}).ParseFS(files, "pages/*.html"))

type pages struct {
	ctx     context.Context // ends with the centre
	centre  *centre
	board   *board
	desks   *desks
	streams chan struct{} // a place for each page that is open
}

const mostStreams = 200

func newPages(ctx context.Context, c *centre) *pages {
	return &pages{ctx: ctx, centre: c, board: &board{centre: c}, desks: newDesks(), streams: make(chan struct{}, mostStreams)}
}

func (p *pages) close() { p.desks.close() }

func (p *pages) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.door)
	mux.HandleFunc("POST /login", p.login)
	mux.HandleFunc("GET /agent", p.agent)
	mux.HandleFunc("GET /agent/live", p.agentLive)
	mux.HandleFunc("POST /agent/{verb}", p.act)
	mux.HandleFunc("GET /supervisor", p.supervisor)
	mux.HandleFunc("GET /supervisor/live", p.supervisorLive)
	for _, name := range []string{"style.css", "live.js"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "pages/"+name) })
	}
	return onlyHere(p.centre.listen, http.NewCrossOriginProtection().Handler(mux))
}

// onlyHere refuses requests for a name that is not that of this machine's loopback, while the pages are on loopback, and says
// that nothing but these pages' own files may be used by them.
func onlyHere(listen string, next http.Handler) http.Handler {
	host, _, _ := net.SplitHostPort(listen)
	local := func(name string) bool { return name == "localhost" || net.ParseIP(name).IsLoopback() }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			asked = r.Host
		}
		if local(host) && !local(strings.Trim(asked, "[]")) {
			http.Error(w, "these pages are for this machine: use 127.0.0.1", http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; form-action 'self'; base-uri 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// doorView is what somebody sees who is not logged in.
type doorView struct {
	Problem, Name string
	Skills        []string
	Channels      []*channelChoice
}

type channelChoice struct {
	Name   string
	AtOnce int
}

func (p *pages) door(w http.ResponseWriter, r *http.Request) {
	if p.desk(r) != nil {
		http.Redirect(w, r, "/agent", http.StatusSeeOther)
		return
	}
	p.showDoor(w, r, http.StatusOK, "")
}

func (p *pages) showDoor(w http.ResponseWriter, r *http.Request, status int, problem string) {
	v := doorView{Problem: problem, Name: r.PostFormValue("name"), Skills: skills}
	for _, c := range channels {
		v.Channels = append(v.Channels, &channelChoice{c.name, c.atOnce})
	}
	p.show(w, status, "door.html", v)
}

func (p *pages) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	d, err := readLogin(r)
	if err != nil {
		p.showDoor(w, r, http.StatusBadRequest, err.Error())
		return
	}
	d.offerFor = p.centre.offerFor
	token, err := p.desks.open(p.ctx, p.centre.q, d)
	if err != nil {
		p.showDoor(w, r, http.StatusConflict, err.Error())
		return
	}
	http.SetCookie(w, &http.Cookie{Name: "desk", Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/agent", http.StatusSeeOther)
}

// readLogin reads who somebody is, and refuses what no agent is.
func readLogin(r *http.Request) (*desk, error) {
	if err := r.ParseForm(); err != nil {
		return nil, fmt.Errorf("the form cannot be read: %w", err)
	}
	d := &desk{name: strings.TrimSpace(r.PostForm.Get("name")), takes: capacities{}}
	if n := utf8.RuneCountInString(d.name); n < 1 || n > 40 || !utf8.ValidString(d.name) || strings.ContainsFunc(d.name, func(c rune) bool { return c < ' ' }) {
		return nil, errors.New("give a name of 1 to 40 letters")
	}
	for _, skill := range skills {
		if r.PostForm.Has("skill-" + skill) {
			d.skills = append(d.skills, skill)
		}
	}
	if len(d.skills) == 0 {
		return nil, errors.New("choose at least one language")
	}
	for _, c := range channels {
		n, err := strconv.Atoi(r.PostForm.Get(c.name))
		if err != nil {
			return nil, fmt.Errorf("%ss at once: a number", c.name)
		}
		d.takes[c.name] = n
	}
	return d, d.takes.check()
}

// desk is that of who asks; nil if he is not logged in.
func (p *pages) desk(r *http.Request) *desk {
	cookie, err := r.Cookie("desk")
	if err != nil {
		return nil
	}
	return p.desks.find(cookie.Value)
}

func (p *pages) agent(w http.ResponseWriter, r *http.Request) {
	d := p.desk(r)
	if d == nil {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	p.show(w, http.StatusOK, "agent.html", p.deskView(d, r.URL.Query().Get("problem")))
}

// deskView is what an agent sees.
type deskView struct {
	view
	Trouble string // with the last click: late, or unknown
	Now     time.Time
	Speed   float64
}

func (v deskView) For(since time.Time) time.Duration { return pace(v.Speed).centre(v.Now.Sub(since)) }

// TakesText is what the agent takes, for people.
func (v deskView) TakesText() string {
	var parts []string
	for _, c := range channels {
		if n := v.Takes[c.name]; n > 0 {
			parts = append(parts, plural(n, c.name))
		}
	}
	return strings.Join(parts, ", ")
}

func (p *pages) deskView(d *desk, trouble string) deskView {
	return deskView{view: d.view(), Trouble: trouble, Now: time.Now(), Speed: p.centre.speed}
}

// act does what an agent has clicked.
func (p *pages) act(w http.ResponseWriter, r *http.Request) {
	d := p.desk(r)
	if d == nil {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	var err error
	switch task := r.PostFormValue("task"); r.PathValue("verb") {
	case "accept":
		err = d.Accept(ctx, task)
	case "decline":
		err = d.Decline(ctx, task)
	case "finish":
		err = d.Finish(task, r.PostFormValue("note"))
	case "away":
		err = d.setAway(ctx, true)
	case "back":
		err = d.setAway(ctx, false)
	case "logout":
		p.desks.shut(d)
	default:
		http.NotFound(w, r)
		return
	}
	where := "/agent"
	switch {
	case errors.Is(err, queue.ErrOfferOver), errors.Is(err, errNotYours):
		where += "?problem=late"
	case err != nil:
		where += "?problem=unknown"
	}
	http.Redirect(w, r, where, http.StatusSeeOther)
}

func (p *pages) supervisor(w http.ResponseWriter, r *http.Request) {
	p.show(w, http.StatusOK, "supervisor.html", p.board.look(r.Context()))
}

func (p *pages) show(w http.ResponseWriter, status int, name string, data any) {
	var page bytes.Buffer
	if err := templates.ExecuteTemplate(&page, name, data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = page.WriteTo(w) // who asked may have gone
}
