// Package orders is the application under test: it places orders, and sends a reminder two hours after each.
package orders

import (
	"context"
	"fmt"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const twoHours = 18 // the last of RocketMQ's delay levels

// Orders sends the messages of the application.
type Orders struct {
	producer rocketmq.Producer
}

// New returns the application, connected to the name server at HOST:PORT.
func New(nameServer string) (*Orders, error) {
	made, err := rocketmq.NewProducer(
		producer.WithNsResolver(primitive.NewPassthroughResolver([]string{nameServer})),
		producer.WithGroupName("orders"),
		producer.WithRetry(2),
	)
	if err != nil {
		return nil, err
	}
	return &Orders{made}, made.Start()
}

// Place places an order.
func (o *Orders) Place(ctx context.Context, drink string) error {
	if err := o.send(ctx, primitive.NewMessage("Orders", []byte(drink))); err != nil {
		return err
	}
	return o.send(ctx, primitive.NewMessage("Reminders", []byte(drink)).WithDelayTimeLevel(twoHours))
}

// Close ends the connection.
func (o *Orders) Close() error {
	return o.producer.Shutdown()
}

func (o *Orders) send(ctx context.Context, message *primitive.Message) error {
	result, err := o.producer.SendSync(ctx, message)
	if err != nil {
		return err
	}
	if result.Status != primitive.SendOK {
		return fmt.Errorf("not stored safely: %v", result)
	}
	return nil
}
