package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	holdMs = 60_000
	limit  = 30*time.Second + holdMs*time.Millisecond
	notify = 40
)

// command is a request or an answer of RocketMQ's remoting protocol, with a header in JSON.
type command struct {
	Code      int               `json:"code"`
	Language  string            `json:"language"`
	Version   int               `json:"version"`
	Opaque    int               `json:"opaque"`
	Flag      int               `json:"flag"`
	Remark    string            `json:"remark,omitempty"`
	ExtFields map[string]string `json:"extFields"`
	Body      []byte            `json:"-"`
}

func (c *command) refusal() string {
	return fmt.Sprintf("refused with code %d, %s", c.Code, c.Remark)
}

func (c *command) number(name string) int64 {
	number, err := strconv.ParseInt(c.ExtFields[name], 10, 64)
	if err != nil {
		panic(name + ": " + err.Error())
	}
	return number
}

func (c *command) list(name string) []string {
	var found map[string][]string
	if err := json.Unmarshal(c.Body, &found); err != nil {
		panic(err.Error())
	}
	return found[name]
}

// record is a stored message.
type record struct {
	queueID     uint32
	queueOffset int64
	storedMs    int64
	topic       string
	body        []byte
	properties  map[string]string
}

// records returns the messages in the body of an answer.
func (c *command) records() (found []record) {
	for data := c.Body; len(data) >= 88; {
		size := binary.BigEndian.Uint32(data)
		one, big := data[:size], binary.BigEndian
		data = data[size:]
		end := 88 + big.Uint32(one[84:])
		topicEnd := end + 1 + uint32(one[end])
		made := record{queueID: big.Uint32(one[12:]), queueOffset: int64(big.Uint64(one[20:])), body: one[88:end],
			storedMs: int64(big.Uint64(one[56:])), topic: string(one[end+1 : topicEnd]), properties: map[string]string{}}
		for _, pair := range strings.Split(string(one[topicEnd+2:]), "\x02") {
			if name, value, isPair := strings.Cut(pair, "\x01"); isPair {
				made.properties[name] = value
			}
		}
		found = append(found, made)
	}
	return found
}

// client is one connection.
type client struct {
	conn     net.Conn
	lock     sync.Mutex
	opaque   int
	waiting  map[int]chan *command
	onNotify func()
}

func dial(address string, onNotify func()) *client {
	conn, err := net.DialTimeout("tcp", address, limit)
	if err != nil {
		panic(err.Error())
	}
	made := &client{conn: conn, waiting: map[int]chan *command{}, onNotify: onNotify}
	go made.read()
	return made
}

func (c *client) read() {
	for {
		var sizes [8]byte
		if _, err := io.ReadFull(c.conn, sizes[:]); err != nil {
			return
		}
		headSize := int(binary.BigEndian.Uint32(sizes[4:]) & 0xffffff)
		rest := make([]byte, binary.BigEndian.Uint32(sizes[:])-4)
		if _, err := io.ReadFull(c.conn, rest); err != nil {
			return
		}
		answer := &command{Body: rest[headSize:]}
		if json.Unmarshal(rest[:headSize], answer) != nil {
			return
		}
		if answer.Flag&1 == 0 { // a request of the broker
			if answer.Code == notify && c.onNotify != nil {
				c.onNotify()
			}
			continue
		}
		c.lock.Lock()
		if waiting := c.waiting[answer.Opaque]; waiting != nil {
			waiting <- answer
			delete(c.waiting, answer.Opaque)
		}
		c.lock.Unlock()
	}
}

// write sends a request. Flag 2 means that no answer is wanted.
func (c *client) write(code, flag int, body any, fields map[string]string) chan *command {
	content, isBytes := body.([]byte)
	if body != nil && !isBytes {
		content, _ = json.Marshal(body)
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.opaque++
	answer := make(chan *command, 1)
	c.waiting[c.opaque] = answer
	head, _ := json.Marshal(command{Code: code, Language: "OTHER", Version: 453, Opaque: c.opaque, Flag: flag, ExtFields: fields})
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(head)+len(content)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(head)))
	if _, err := c.conn.Write(append(append(frame, head...), content...)); err != nil {
		panic(err.Error())
	}
	return answer
}

func (c *client) request(code int, body any, fields map[string]string) *command {
	select {
	case answer := <-c.write(code, 0, body, fields):
		return answer
	case <-time.After(limit):
		panic(fmt.Sprintf("no answer to request %d in %v", code, limit))
	}
}

func (c *client) accepted(code int, body any, fields map[string]string) *command {
	answer := c.request(code, body, fields)
	if answer.Code != 0 {
		panic(answer.refusal())
	}
	return answer
}

func fields(pairs ...any) map[string]string {
	found := map[string]string{}
	for at := 0; at < len(pairs); at += 2 {
		found[fmt.Sprint(pairs[at])] = fmt.Sprint(pairs[at+1])
	}
	return found
}

// await waits until the condition holds, or should.
func await(isReached func() bool) {
	for looks := 0; looks < 600 && !isReached(); looks++ {
		time.Sleep(50 * time.Millisecond)
	}
}
