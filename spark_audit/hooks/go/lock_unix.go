//go:build unix

package audithooks

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
)

// The locks are those of the process, as Java's are: a second lock of the same process would succeed.
var (
	ownLocks = map[string]bool{}
	locking  sync.Mutex
)

// locked returns the locked file, or nil if another process or this one has the lock.
func locked(path string) (*os.File, error) {
	locking.Lock()
	defer locking.Unlock()
	if ownLocks[path] {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &lock); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
			return nil, nil
		}
		return nil, err
	}
	ownLocks[path] = true
	return file, nil
}

func unlock(file *os.File) {
	locking.Lock()
	defer locking.Unlock()
	delete(ownLocks, file.Name())
	_ = file.Close()
}
