package audithooks

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	schema     = "2"
	batchRows  = 1_024
	idle       = 100 * time.Millisecond
	retryAfter = time.Second
)

type attrs map[string]string

// row is one row of the event log. What is empty or nil is left out.
type row struct {
	ts           int64
	TS           int64   `json:"ts"`
	Seq          int64   `json:"seq"`
	Node         string  `json:"node"`
	Kind         string  `json:"kind"`
	MsgID        string  `json:"msg_id,omitempty"`
	Topic        string  `json:"topic,omitempty"`
	QueueID      *int    `json:"queue_id,omitempty"`
	QueueOffset  *int64  `json:"queue_offset,omitempty"`
	CommitOffset *int64  `json:"commit_offset,omitempty"`
	Group        string  `json:"group,omitempty"`
	Client       string  `json:"client,omitempty"`
	Status       string  `json:"status,omitempty"`
	Attempt      int     `json:"attempt,omitempty"`
	Keys         string  `json:"keys,omitempty"`
	Tags         *string `json:"tags,omitempty"`
	BornTS       int64   `json:"born_ts,omitempty"`
	Attrs        attrs   `json:"attrs,omitempty"`
}

func nowMicros() int64 { return time.Now().UnixMicro() }

// output is where rows go. Only one goroutine calls it at a time.
type output interface {
	node() string
	seqNext() int64
	missingSince() int64 // the time from which rows of an earlier process may be missing, or -1
	write(lines []byte, rows int64, lastTS int64) error
	rest() error
	finish() error
}

// recorder takes rows from any goroutine and writes them in its own.
type recorder struct {
	sampleLimit  uint64
	rows         chan *row
	output       output
	stop         chan struct{}
	stopped      chan struct{}
	closing      sync.RWMutex
	closed       bool
	droppedInAll atomic.Int64

	dropping sync.Mutex
	dropped  int64
	since    int64
	reason   string
	retryAt  time.Time
	loggedAt time.Time
}

func newRecorder(to output, queueRows int, sampling float64) *recorder {
	r := &recorder{
		sampleLimit: uint64(math.Round(sampling * (1 << 32))),
		rows:        make(chan *row, max(queueRows, 1)), output: to, stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	if since := to.missingSince(); since >= 0 {
		r.rows <- &row{
			ts: nowMicros(), Kind: "gap", Attrs: attrs{"since": strconv.FormatInt(since, 10), "reason": "killed"},
		}
	}
	go r.run()
	return r
}

// record takes a row, or drops it. It waits for no input or output.
func (r *recorder) record(taken *row) {
	if taken.MsgID != "" && !r.isInSample(taken.MsgID) {
		return
	}
	if taken.ts == 0 {
		taken.ts = nowMicros()
	}
	r.closing.RLock()
	defer r.closing.RUnlock()
	if r.closed {
		r.droppedInAll.Add(1)
		return
	}
	select {
	case r.rows <- taken:
	default:
		r.drop(1, taken.ts, "queue_full")
	}
}

// isInSample returns whether the first 32 bits of the MD5 of the id are below the limit: all nodes choose the same ids.
func (r *recorder) isInSample(id string) bool {
	if r.sampleLimit >= 1<<32 {
		return true
	}
	hash := md5.Sum([]byte(id))
	return uint64(binary.BigEndian.Uint32(hash[:4])) < r.sampleLimit
}

func (r *recorder) drop(rows, since int64, reason string) {
	r.dropping.Lock()
	defer r.dropping.Unlock()
	if r.dropped == 0 {
		r.since, r.reason = since, reason
	}
	r.since = min(r.since, since)
	r.dropped += rows
	r.droppedInAll.Add(rows)
}

func (r *recorder) run() {
	defer close(r.stopped)
	ticks := time.NewTicker(idle)
	defer ticks.Stop()
	for {
		select {
		case first := <-r.rows:
			r.write(r.taken(first))
		case <-ticks.C:
			r.write(nil)
			if err := r.output.rest(); err != nil {
				r.tell(err)
			}
		case <-r.stop:
			return
		}
	}
}

func (r *recorder) taken(first *row) []*row {
	rows := []*row{first}
	for len(rows) < batchRows {
		select {
		case next := <-r.rows:
			rows = append(rows, next)
		default:
			return rows
		}
	}
	return rows
}

// write writes rows, and the gap before them.
func (r *recorder) write(rows []*row) {
	if time.Now().Before(r.retryAt) {
		if len(rows) > 0 {
			r.drop(int64(len(rows)), rows[0].ts, "output_failed")
		}
		return
	}
	r.dropping.Lock()
	gapRows, since, reason := r.dropped, r.since, r.reason
	r.dropped = 0
	r.dropping.Unlock()
	all := rows
	if gapRows > 0 {
		gap := &row{ts: nowMicros(), Kind: "gap", Attrs: attrs{
			"since": strconv.FormatInt(since, 10), "dropped": strconv.FormatInt(gapRows, 10), "reason": reason,
		}}
		all = append([]*row{gap}, rows...)
	}
	if len(all) == 0 {
		return
	}
	if err := r.output.write(r.encoded(all), int64(len(all)), all[len(all)-1].ts); err != nil {
		r.retryAt = time.Now().Add(retryAfter)
		if gapRows > 0 {
			r.drop(gapRows, since, reason)
			r.droppedInAll.Add(-gapRows) // counted before
		}
		if len(rows) > 0 {
			r.drop(int64(len(rows)), rows[0].ts, "output_failed")
		}
		r.tell(err)
	}
}

func (r *recorder) encoded(rows []*row) []byte {
	var lines []byte
	for i, each := range rows {
		each.TS, each.Node, each.Seq = each.ts, r.output.node(), r.output.seqNext()+int64(i)
		if each.Seq == 0 {
			// The map may belong to another row, too.
			first := attrs{"schema": schema}
			for name, value := range each.Attrs {
				first[name] = value
			}
			each.Attrs = first
		}
		line, err := json.Marshal(each)
		if err != nil {
			panic(err) // a row has only texts and numbers
		}
		lines = append(append(lines, line...), '\n')
	}
	return lines
}

func (r *recorder) close() error {
	r.closing.Lock()
	if r.closed {
		r.closing.Unlock()
		return nil
	}
	r.closed = true
	r.closing.Unlock()
	close(r.stop)
	<-r.stopped
	r.retryAt = time.Time{}
	for len(r.rows) > 0 {
		r.write(r.taken(<-r.rows))
	}
	r.write(nil)
	if r.dropped > 0 {
		return fmt.Errorf("audit-hooks: %d rows were not written", r.dropped)
	}
	return r.output.finish()
}

// tell reports a failure on standard error, at most once a minute.
func (r *recorder) tell(err error) {
	if time.Since(r.loggedAt) >= time.Minute {
		r.loggedAt = time.Now()
		fmt.Fprintln(os.Stderr, "audit-hooks: rows are dropped and counted:", err)
	}
}
