package orders

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const startTimeout = 60 * time.Second

// broker is a RocketMQ broker for one test. Copy this file into your project.
type broker struct {
	t       *testing.T
	NameSrv string `json:"namesrv"`
	Control string `json:"control"`
}

// newBroker starts a broker, which ends with the test.
func newBroker(t *testing.T) *broker {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "ready.json")
	program := "mqproof"
	if named := os.Getenv("MQPROOF"); named != "" {
		program = named
	}
	process := exec.Command(program, "serve", "--ephemeral", "--control", "0", "--ready-file", file)
	output := &strings.Builder{}
	process.Stdout, process.Stderr = output, output
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	until := time.Now().Add(startTimeout)
	for {
		if content, err := os.ReadFile(file); err == nil {
			found := &broker{t: t}
			if err := json.Unmarshal(content, found); err != nil {
				t.Fatal(err)
			}
			return found
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("no broker: %v: %s", err, output)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(until) {
			t.Fatalf("no broker in %v", startTimeout)
		}
	}
}

// advance lets the time of the broker pass at once.
func (b *broker) advance(hours float64) {
	b.t.Helper()
	b.request("POST", "/advance", fmt.Sprintf(`{"hours": %g}`, hours), nil)
}

// loseAnswersOfSends lets the next sends be executed and their answers be lost.
func (b *broker) loseAnswersOfSends(times int) {
	b.t.Helper()
	b.request("POST", "/faults", fmt.Sprintf(`{"operation": "send", "executed": true, "times": %d}`, times), nil)
}

// bodies returns the bodies of all messages that the topic has.
func (b *broker) bodies(topic string) string {
	b.t.Helper()
	var answer struct {
		Messages []struct {
			Body string `json:"body"`
		} `json:"messages"`
	}
	b.request("GET", "/messages?topic="+url.QueryEscape(topic), "", &answer)
	var bodies []string
	for _, message := range answer.Messages {
		bodies = append(bodies, message.Body)
	}
	return strings.Join(bodies, " ")
}

func (b *broker) request(method, path, body string, answer any) {
	b.t.Helper()
	request, err := http.NewRequest(method, "http://"+b.Control+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.t.Fatalf("%s %s: %v: %s", method, path, err, content)
	}
	if answer != nil {
		if err := json.Unmarshal(content, answer); err != nil {
			b.t.Fatal(err)
		}
	}
}
