package audithooks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"time"
)

const namesMax = 1_000

// files are the rotating NDJSON files of one node: the same as those of the Java hooks.
//
// NODE.part is being written; a finished file is NODE-SEQ.ndjson, where SEQ is the number of its first row. NODE.state
// has the number of the next row and says whether the process has ended with all rows written. NODE.lock keeps another
// process from using the name: that one takes NODE-2.
type files struct {
	settings  Settings
	name      string
	lock      *os.File
	part      *os.File
	partBytes int64
	partSeq   int64
	partSince time.Time
	next      int64
	lastTS    int64
	missing   int64
}

func openFiles(settings Settings) (*files, error) {
	if err := os.MkdirAll(settings.Directory, 0o755); err != nil {
		return nil, err
	}
	for number := 1; number <= namesMax; number++ {
		name := settings.Node
		if number > 1 {
			name = fmt.Sprintf("%s-%d", settings.Node, number)
		}
		lock, err := locked(filepath.Join(settings.Directory, name+".lock"))
		if err != nil {
			return nil, err
		}
		if lock != nil {
			f := &files{settings: settings, name: name, lock: lock}
			if err := f.open(); err != nil {
				unlock(lock)
				return nil, err
			}
			return f, nil
		}
	}
	return nil, fmt.Errorf("audit-hooks: %s: %d processes have the node %s", settings.Directory, namesMax, settings.Node)
}

func (f *files) path(suffix string) string { return filepath.Join(f.settings.Directory, f.name+suffix) }

func (f *files) open() error {
	wasComplete, isFirst := false, true
	text, err := os.ReadFile(f.path(".state"))
	if err == nil {
		var word string
		if _, err := fmt.Sscanf(string(text), "%d %d %s", &f.next, &f.lastTS, &word); err != nil {
			return fmt.Errorf("audit-hooks: %s: expected the number of the next row, a time and complete or open", f.path(".state"))
		}
		wasComplete, isFirst = word == "complete", f.next == 0
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	adopted, err := f.adoptPart()
	if err != nil {
		return err
	}
	f.missing = -1
	if !wasComplete && (adopted || !isFirst) {
		f.missing = f.lastTS
	}
	// What this process may lose is not older than its start.
	f.lastTS = max(f.lastTS, nowMicros())
	return f.writeState("open")
}

func (f *files) node() string        { return f.name }
func (f *files) seqNext() int64      { return f.next }
func (f *files) missingSince() int64 { return f.missing }

func (f *files) write(lines []byte, rows, lastTS int64) error {
	if f.part == nil {
		if err := f.openPart(); err != nil {
			return err
		}
	}
	if _, err := f.part.Write(lines); err != nil {
		// Without the incomplete write, its numbers can be used again.
		if cut := f.part.Truncate(f.partBytes); cut != nil {
			_ = f.part.Close()
			f.part = nil
		}
		return err
	}
	f.partBytes += int64(len(lines))
	f.next += rows
	f.lastTS = max(f.lastTS, lastTS)
	if f.partBytes >= f.settings.FileBytes {
		return f.endPart("open")
	}
	return nil
}

func (f *files) rest() error {
	if f.part != nil && time.Since(f.partSince) >= f.settings.FileSeconds {
		return f.endPart("open")
	}
	return nil
}

func (f *files) finish() error {
	defer unlock(f.lock)
	if err := f.endPart("complete"); err != nil {
		return err
	}
	return f.writeState("complete")
}

func (f *files) openPart() error {
	if _, err := f.adoptPart(); err != nil {
		return err
	}
	part, err := os.OpenFile(f.path(".part"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	f.part, f.partBytes, f.partSeq, f.partSince = part, 0, f.next, time.Now()
	return nil
}

func (f *files) endPart(state string) error {
	if f.part == nil {
		return nil
	}
	if err := f.part.Close(); err != nil {
		return err
	}
	f.part = nil
	if err := f.publish(f.partSeq); err != nil {
		return err
	}
	if err := f.writeState(state); err != nil {
		return err
	}
	return f.deleteOldest()
}

func (f *files) publish(firstSeq int64) error {
	return os.Rename(f.path(".part"), f.path(fmt.Sprintf("-%012d.ndjson", firstSeq)))
}

func (f *files) deleteOldest() error {
	entries, err := os.ReadDir(f.settings.Directory)
	if err != nil {
		return err
	}
	finished := regexp.MustCompile("^" + regexp.QuoteMeta(f.name) + `-\d{12,}\.ndjson$`)
	var names []string
	for _, entry := range entries {
		if finished.MatchString(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	sort.Sort(sort.Reverse(sort.StringSlice(names)))
	var size int64
	for _, name := range names {
		path := filepath.Join(f.settings.Directory, name)
		about, err := os.Stat(path)
		if err != nil {
			continue // a shipper has moved it
		}
		if size += about.Size(); size > f.settings.TotalBytes {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// adoptPart takes over the file that an earlier process was writing, without its incomplete last row.
func (f *files) adoptPart() (bool, error) {
	content, err := os.Open(f.path(".part"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer content.Close()
	var size, rows, first int64
	lines := bufio.NewReaderSize(content, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		var begin struct{ TS, Seq int64 }
		if err != nil || json.Unmarshal(bytes.TrimSpace(line), &begin) != nil {
			break
		}
		if rows == 0 {
			first = begin.Seq
		}
		rows++
		size += int64(len(line))
		f.next, f.lastTS = max(f.next, begin.Seq+1), max(f.lastTS, begin.TS)
	}
	if rows == 0 {
		return false, os.Remove(f.path(".part"))
	}
	if err := os.Truncate(f.path(".part"), size); err != nil {
		return false, err
	}
	return true, f.publish(first)
}

func (f *files) writeState(word string) error {
	text := fmt.Sprintf("%d %d %s\n", f.next, f.lastTS, word)
	if err := os.WriteFile(f.path(".state.new"), []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(f.path(".state.new"), f.path(".state"))
}
