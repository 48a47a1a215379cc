package audithooks

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"
)

// slowOutput waits, or fails, until it may go on.
type slowOutput struct {
	lines    []string
	next     int64
	mayWrite chan struct{}
	isFull   chan bool
}

func (s *slowOutput) node() string        { return "n" }
func (s *slowOutput) seqNext() int64      { return s.next }
func (s *slowOutput) missingSince() int64 { return -1 }
func (s *slowOutput) rest() error         { return nil }
func (s *slowOutput) finish() error       { return nil }

func (s *slowOutput) write(lines []byte, rows, _ int64) error {
	<-s.mayWrite
	select {
	case <-s.isFull:
		return errors.New("no space left on device")
	default:
	}
	s.lines = append(s.lines, strings.Split(strings.TrimSpace(string(lines)), "\n")...)
	s.next += rows
	return nil
}

func dropsOf(t *testing.T, lines []string) (gaps, dropped int64) {
	t.Helper()
	for number, line := range lines {
		var found row
		if err := json.Unmarshal([]byte(line), &found); err != nil {
			t.Fatal(err, line)
		}
		if found.Seq != int64(number) {
			t.Fatalf("row %d has the number %d", number, found.Seq)
		}
		if found.Kind == "gap" {
			gaps++
			rows, err := strconv.ParseInt(found.Attrs["dropped"], 10, 64)
			if err != nil {
				t.Fatal(err, line)
			}
			dropped += rows
		}
	}
	return gaps, dropped
}

func TestAFullQueueDropsRowsAndTheLogHasTheirNumber(t *testing.T) {
	to := &slowOutput{mayWrite: make(chan struct{}), isFull: make(chan bool)}
	r := newRecorder(to, 16, 1)
	for i := 0; i < 5_000; i++ {
		r.record(&row{Kind: "send", MsgID: strconv.Itoa(i)}) // the output waits all the time: this loop must end
	}
	dropped := r.droppedInAll.Load()
	if dropped == 0 {
		t.Fatal("nothing was dropped")
	}
	close(to.mayWrite)
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	gaps, counted := dropsOf(t, to.lines)
	if counted != dropped || int64(len(to.lines)) != 5_000-dropped+gaps {
		t.Fatalf("dropped %d, reported %d, %d rows with %d gaps", dropped, counted, len(to.lines), gaps)
	}
}

func TestOnlyMessagesOfTheSampleAreRecordedAndAllRowsWithoutAMessage(t *testing.T) {
	to := &slowOutput{mayWrite: make(chan struct{}), isFull: make(chan bool)}
	close(to.mayWrite)
	r := newRecorder(to, 16, 0.01)
	r.record(&row{Kind: "rebalance"})
	r.record(&row{Kind: "send", MsgID: "message-0"})
	r.record(&row{Kind: "send", MsgID: "message-99"}) // the only one of the first 100
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	if len(to.lines) != 2 || !strings.Contains(to.lines[1], "message-99") {
		t.Fatalf("recorded %s", to.lines)
	}
}

func TestADiskWithoutSpaceDropsRowsThatAreReportedLater(t *testing.T) {
	to := &slowOutput{mayWrite: make(chan struct{}), isFull: make(chan bool, 1)}
	close(to.mayWrite)
	to.isFull <- true
	r := newRecorder(to, 16, 1)
	r.record(&row{Kind: "send", MsgID: "lost"})
	for r.droppedInAll.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	r.record(&row{Kind: "send", MsgID: "also"})
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	gaps, counted := dropsOf(t, to.lines)
	if gaps != 1 || counted != r.droppedInAll.Load() {
		t.Fatal(to.lines, r.droppedInAll.Load())
	}
}

func opened(t *testing.T, folder string) *Hooks {
	t.Helper()
	hooks, err := Open(Settings{Directory: folder, Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	return hooks
}

func rows(t *testing.T, folder string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(names)
	var all []string
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	return all
}

func TestAProcessThatEndedContinuesWithoutAGap(t *testing.T) {
	folder := t.TempDir()
	for i := 0; i < 2; i++ {
		hooks := opened(t, folder)
		hooks.recorder.record(&row{Kind: "send", MsgID: "m", Tags: pointer("")})
		if err := hooks.Close(); err != nil {
			t.Fatal(err)
		}
	}
	found := rows(t, folder)
	if gaps, _ := dropsOf(t, found); gaps != 0 || len(found) != 2 {
		t.Fatal(found)
	}
	if !strings.Contains(found[0], `"attrs":{"schema":"2"}`) || strings.Contains(found[1], "schema") {
		t.Fatal(found)
	}
}

func TestAKilledProcessLeavesAGapAndAnIncompleteRowIsCutOff(t *testing.T) {
	folder := t.TempDir()
	killed := opened(t, folder)
	killed.recorder.record(&row{Kind: "send", MsgID: "m"})
	part := filepath.Join(folder, "n.part")
	for {
		if text, _ := os.ReadFile(part); len(text) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	file, err := os.OpenFile(part, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"ts":9,"seq":1,"no`); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	unlock(killed.recorder.output.(*files).lock)
	next := opened(t, folder)
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	found := rows(t, folder)
	if len(found) != 2 || !strings.Contains(found[1], `"reason":"killed"`) {
		t.Fatal(found)
	}
}

func TestASecondProcessTakesAnotherName(t *testing.T) {
	folder := t.TempDir()
	first, second := opened(t, folder), opened(t, folder)
	if first.recorder.output.node() != "n" || second.recorder.output.node() != "n-2" {
		t.Fatal(first.recorder.output.node(), second.recorder.output.node())
	}
	_, _ = first.Close(), second.Close()
}

func TestAWrongSettingIsRefused(t *testing.T) {
	if _, err := Open(Settings{QueueRows: -1}); err == nil {
		t.Fatal("a negative queue")
	}
	if _, err := Open(Settings{Topic: "T"}); err == nil {
		t.Fatal("a topic without name servers")
	}
	if _, err := Open(Settings{Sampling: 1.5}); err == nil {
		t.Fatal("a share above 1")
	}
	t.Setenv("AUDIT_HOOKS_SAMPLING", "0")
	if _, err := FromEnvironment(); err == nil {
		t.Fatal("a sample of nothing")
	}
	t.Setenv("AUDIT_HOOKS_SAMPLING", "0.01")
	if settings, err := FromEnvironment(); err != nil || settings.Sampling != 0.01 {
		t.Fatal(settings, err)
	}
	t.Setenv("AUDIT_HOOKS_FILE_MIB", "much")
	if _, err := FromEnvironment(); err == nil {
		t.Fatal("a size that is no number")
	}
}

func BenchmarkRecord(b *testing.B) {
	hooks, err := Open(Settings{Directory: b.TempDir(), Node: "n", QueueRows: 1 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer hooks.Close()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		hooks.recorder.record(&row{Kind: "send", MsgID: "7F0000019DC71A6E04307C2B66C20001", Topic: "Orders"})
	}
}
