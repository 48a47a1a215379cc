;; A function that selects the messages whose body begins with ALERT.
(module
  ;; The filter server writes the properties and the body of each message to the memory.
  (memory (export "memory") 1)

  ;; allocate(size): makes room for a message and returns its address. Here it is 0 for each message,
  ;; because the function keeps nothing from one message to the next.
  (func (export "allocate") (param $size i32) (result i32)
    (local $pages i32)
    (local.set $pages
      (i32.sub (i32.add (i32.shr_u (local.get $size) (i32.const 16)) (i32.const 1)) (memory.size)))
    (if (i32.gt_s (local.get $pages) (i32.const 0))
      (then (drop (memory.grow (local.get $pages)))))
    (i32.const 0))

  ;; matches(properties, their size, body, its size): 1 selects the message, 0 does not.
  (func (export "matches")
    (param $properties i32) (param $properties_size i32) (param $body i32) (param $size i32) (result i32)
    (if (i32.lt_u (local.get $size) (i32.const 5)) (then (return (i32.const 0))))
    (i32.and
      (i32.eq (i32.load (local.get $body)) (i32.const 0x52454c41))           ;; ALER, little-endian
      (i32.eq (i32.load8_u offset=4 (local.get $body)) (i32.const 0x54))))) ;; T
