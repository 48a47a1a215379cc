package orders

import (
	"context"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

func place(t *testing.T, b *broker, drink string) {
	t.Helper()
	orders, err := New(b.NameSrv)
	if err != nil {
		t.Fatal(err)
	}
	defer orders.Close()
	if err := orders.Place(context.Background(), drink); err != nil {
		t.Fatal(err)
	}
}

func TestAnOrderIsSent(t *testing.T) {
	b := newBroker(t)
	place(t, b, "coffee")
	if found := b.bodies("Orders"); found != "coffee" {
		t.Fatalf("found %q", found)
	}
}

func TestAnOrderIsStoredTwiceIfItsAnswerIsLost(t *testing.T) {
	b := newBroker(t)
	b.loseAnswersOfSends(1)
	place(t, b, "tea")
	if found := b.bodies("Orders"); found != "tea tea" {
		t.Fatalf("found %q", found)
	}
}

func TestAReminderArrivesAfterTwoHours(t *testing.T) {
	b := newBroker(t)
	place(t, b, "cocoa")
	arrived := make(chan string, 10)
	reminders, err := rocketmq.NewPushConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{b.NameSrv})),
		consumer.WithGroupName("reminders"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	)
	if err != nil {
		t.Fatal(err)
	}
	err = reminders.Subscribe("Reminders", consumer.MessageSelector{},
		func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, message := range messages {
				arrived <- string(message.Body)
			}
			return consumer.ConsumeSuccess, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if err := reminders.Start(); err != nil {
		t.Fatal(err)
	}
	defer reminders.Shutdown()
	b.advance(1.9)
	if found := b.bodies("Reminders"); found != "" {
		t.Fatalf("found %q before two hours", found)
	}
	b.advance(0.2)
	select {
	case drink := <-arrived:
		if drink != "cocoa" {
			t.Fatalf("received %q", drink)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("no reminder")
	}
}
