package audithooks

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Settings says where rows are written. Zero values stand for the defaults.
type Settings struct {
	Directory   string        // default: audit-events
	Node        string        // default: the name of the host; unique in the cluster
	QueueRows   int           // rows that may wait to be written; default 65,536
	FileBytes   int64         // size of a file at which the next one begins; default 64 MiB
	FileSeconds time.Duration // age of a file at which the next one begins; default 10 s
	TotalBytes  int64         // size of all finished files; older ones are deleted; default 1 GiB
	Topic       string        // write to this topic instead of files
	NameServers []string      // HOST:PORT of the name servers of the topic
	Sampling    float64       // share of the messages that are recorded, chosen by their ids; default 1
}

// FromEnvironment reads the settings that the Java hooks have: AUDIT_HOOKS_DIRECTORY, AUDIT_HOOKS_NODE,
// AUDIT_HOOKS_QUEUE_ROWS, AUDIT_HOOKS_FILE_MIB, AUDIT_HOOKS_FILE_SECONDS, AUDIT_HOOKS_TOTAL_MIB, AUDIT_HOOKS_TOPIC,
// AUDIT_HOOKS_NAMESRV and AUDIT_HOOKS_SAMPLING.
func FromEnvironment() (Settings, error) {
	settings := Settings{Directory: os.Getenv("AUDIT_HOOKS_DIRECTORY"), Node: os.Getenv("AUDIT_HOOKS_NODE")}
	settings.Topic = os.Getenv("AUDIT_HOOKS_TOPIC")
	if names := os.Getenv("AUDIT_HOOKS_NAMESRV"); names != "" {
		settings.NameServers = strings.Split(names, ";")
	}
	var err error
	number := func(name string) int64 {
		text := os.Getenv(name)
		if text == "" {
			return 0
		}
		value, wrong := strconv.ParseInt(text, 10, 32)
		if (wrong != nil || value < 1) && err == nil {
			err = fmt.Errorf("audit-hooks: %s=%s: expected a whole number from 1", name, text)
		}
		return value
	}
	settings.QueueRows = int(number("AUDIT_HOOKS_QUEUE_ROWS"))
	settings.FileBytes = number("AUDIT_HOOKS_FILE_MIB") << 20
	settings.FileSeconds = time.Duration(number("AUDIT_HOOKS_FILE_SECONDS")) * time.Second
	settings.TotalBytes = number("AUDIT_HOOKS_TOTAL_MIB") << 20
	if text := os.Getenv("AUDIT_HOOKS_SAMPLING"); text != "" {
		rate, wrong := strconv.ParseFloat(text, 64)
		if (wrong != nil || !(rate > 0 && rate <= 1)) && err == nil {
			err = fmt.Errorf("audit-hooks: AUDIT_HOOKS_SAMPLING=%s: expected a rate above 0 and up to 1", text)
		}
		settings.Sampling = rate
	}
	return settings, err
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]`)

func (s Settings) checked() (Settings, error) {
	if s.QueueRows < 0 || s.FileBytes < 0 || s.FileSeconds < 0 || s.TotalBytes < 0 {
		return s, fmt.Errorf("audit-hooks: a setting is negative: %+v", s)
	}
	if !(s.Sampling >= 0 && s.Sampling <= 1) {
		return s, fmt.Errorf("audit-hooks: Sampling %v: expected a rate above 0 and up to 1", s.Sampling)
	}
	if s.Topic != "" && (s.Directory != "" || len(s.NameServers) == 0) {
		return s, errors.New("audit-hooks: Topic: expected NameServers, and no Directory")
	}
	if s.Directory == "" {
		s.Directory = "audit-events"
	}
	if s.Node == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "go-client"
		}
		s.Node = host
	}
	s.Node = notInNames.ReplaceAllString(s.Node, "_")
	s.QueueRows = either(s.QueueRows, 65_536)
	s.FileBytes = either(s.FileBytes, 64<<20)
	s.FileSeconds = either(s.FileSeconds, 10*time.Second)
	s.TotalBytes = either(s.TotalBytes, 1<<30)
	s.Sampling = either(s.Sampling, 1)
	return s, nil
}

func either[T int | int64 | float64 | time.Duration](chosen, byDefault T) T {
	if chosen == 0 {
		return byDefault
	}
	return chosen
}

func pointer[T any](value T) *T { return &value }
