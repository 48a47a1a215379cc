package audithooks

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	topicGroup   = "AUDIT_HOOKS_PRODUCER"
	bodyBytesMax = 1 << 20
	sendTimeout  = 5 * time.Second
)

// topicOutput writes rows to a topic, as messages with lines of NDJSON.
//
// Each process has a node of its own, because a topic does not keep the last number of a node. A failed send may have
// been stored, so its numbers are not used again.
type topicOutput struct {
	topic    string
	name     string
	next     int64
	producer rocketmq.Producer
	started  bool
}

func openTopic(settings Settings) (*topicOutput, error) {
	names, err := primitive.NewNamesrvAddr(settings.NameServers...)
	if err != nil {
		return nil, err
	}
	name := settings.Node + "-" + strconv.FormatInt(time.Now().UnixMilli(), 36)
	made, err := rocketmq.NewProducer(producer.WithNameServer(names), producer.WithGroupName(topicGroup),
		producer.WithInstanceName("audit-hooks-"+name), producer.WithSendMsgTimeout(sendTimeout))
	if err != nil {
		return nil, err
	}
	return &topicOutput{topic: settings.Topic, name: name, producer: made}, nil
}

func (t *topicOutput) node() string        { return t.name }
func (t *topicOutput) seqNext() int64      { return t.next }
func (t *topicOutput) missingSince() int64 { return -1 }
func (t *topicOutput) rest() error         { return nil }

func (t *topicOutput) write(lines []byte, rows, _ int64) error {
	t.next += rows
	if !t.started {
		if err := t.producer.Start(); err != nil {
			return err
		}
		t.started = true
	}
	for len(lines) > 0 {
		end := len(lines)
		if end > bodyBytesMax {
			if end = bytes.LastIndexByte(lines[:bodyBytesMax], '\n') + 1; end == 0 {
				end = bytes.IndexByte(lines, '\n') + 1
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 4*sendTimeout)
		_, err := t.producer.SendSync(ctx, primitive.NewMessage(t.topic, lines[:end]))
		cancel()
		if err != nil {
			return err
		}
		lines = lines[end:]
	}
	return nil
}

func (t *topicOutput) finish() error { return t.producer.Shutdown() }
