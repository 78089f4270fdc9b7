import CTrunklineLinux
import Glibc
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform

/// Memory for reading datagrams in batches: slots, addresses and message headers, made once. One thread.
struct ReceiveBatch: ~Copyable {
  // `Limits.datagramsPerBatch` of each, linked to each other in `init`; freed in deinit.
  private let slab: UnsafeMutableRawPointer
  private let names: UnsafeMutablePointer<sockaddr_storage>
  private let vectors: UnsafeMutablePointer<iovec>
  private let messages: UnsafeMutablePointer<clx_mmsg>
  private(set) var count = 0
  private var limit = Limits.datagramsPerBatch

  init() {
    let n = Limits.datagramsPerBatch
    slab = .allocate(byteCount: n * Limits.datagramBytes, alignment: 64)
    names = .allocate(capacity: n)
    names.initialize(repeating: sockaddr_storage(), count: n)
    vectors = .allocate(capacity: n)
    messages = .allocate(capacity: n)
    messages.initialize(repeating: clx_mmsg(), count: n)
    for index in 0..<n {
      (vectors + index).initialize(to: iovec(iov_base: slab + index * Limits.datagramBytes, iov_len: Limits.datagramBytes))
      messages[index].hdr.msg_iov = vectors + index
      messages[index].hdr.msg_iovlen = 1
      messages[index].hdr.msg_name = UnsafeMutableRawPointer(names + index)
    }
  }
  deinit {
    slab.deallocate()
    names.deallocate()
    vectors.deallocate()
    messages.deallocate()
  }

  /// Reads the waiting datagrams, up to `limit` ≤ a batch. False if the socket is empty or reported an ICMP error, which is
  /// thereby cleared.
  mutating func receive(on fd: Int32, limit: Int = Limits.datagramsPerBatch) -> Bool {
    self.limit = limit
    for index in 0..<limit {
      messages[index].hdr.msg_namelen = socklen_t(MemoryLayout<sockaddr_storage>.size)
    }
    let received = clx_recvmmsg(fd, messages, UInt32(limit), Int32(MSG_DONTWAIT))
    count = max(0, Int(received))
    return received > 0
  }

  var isFull: Bool { count == limit }

  /// The source of datagram `index`; nil for an unknown family.
  func source(_ index: Int) -> SocketAddress? { SocketAddress(names + index) }
  /// Its bytes; nil when it did not fit into a slot. `index` < `count`.
  func bytes(_ index: Int) -> UnsafeMutableRawBufferPointer? {
    guard index < count, messages[index].hdr.msg_flags & Int32(MSG_TRUNC) == 0 else { return nil }
    return UnsafeMutableRawBufferPointer(start: slab + index * Limits.datagramBytes, count: Int(messages[index].len))
  }
}

/// Sends the datagrams of an `OutgoingBatch`, one `sendmmsg` per socket and up to 32 datagrams. One thread.
struct SendBatch: ~Copyable {
  private let names: UnsafeMutablePointer<sockaddr_storage>
  private let vectors: UnsafeMutablePointer<iovec>
  private let messages: UnsafeMutablePointer<clx_mmsg>
  private let sent: UnsafeMutablePointer<Bool>
  private let capacity: Int

  init(capacity: Int) {
    let n = Limits.datagramsPerBatch
    self.capacity = capacity
    names = .allocate(capacity: n)
    names.initialize(repeating: sockaddr_storage(), count: n)
    vectors = .allocate(capacity: n)
    vectors.initialize(repeating: iovec(), count: n)
    messages = .allocate(capacity: n)
    messages.initialize(repeating: clx_mmsg(), count: n)
    sent = .allocate(capacity: capacity)
    sent.initialize(repeating: false, count: capacity)
    for index in 0..<n {
      messages[index].hdr.msg_iov = vectors + index
      messages[index].hdr.msg_iovlen = 1
      messages[index].hdr.msg_name = UnsafeMutableRawPointer(names + index)
    }
  }
  deinit {
    names.deallocate()
    vectors.deallocate()
    messages.deallocate()
    sent.deallocate()
  }

  struct Outcome {
    var packets = 0
    var bytes = 0
    /// The kernel's buffer was full, or the peer is known to be unreachable: the datagram is lost.
    var refused = 0
  }

  /// HOT: empties `batch`. Datagrams of one socket leave in their order.
  mutating func send(_ batch: inout OutgoingBatch) -> Outcome {
    var outcome = Outcome()
    let total = min(batch.count, capacity)
    for index in 0..<total { sent[index] = false }
    var first = 0
    while first < total {
      if sent[first] {
        first &+= 1
        continue
      }
      let fd = batch[entry: first].route.raw
      var gathered = 0
      var index = first
      while index < total, gathered < Limits.datagramsPerBatch {
        let entry = batch[entry: index]
        if !sent[index], entry.route.raw == fd {
          sent[index] = true
          messages[gathered].hdr.msg_namelen = entry.destination.write(to: names + gathered)
          vectors[gathered] = iovec(iov_base: batch[bytes: index].baseAddress, iov_len: entry.count)
          gathered &+= 1
        }
        index &+= 1
      }
      flush(fd, gathered, &outcome)
    }
    batch.removeAll()
    return outcome
  }

  private func flush(_ fd: Int32, _ count: Int, _ outcome: inout Outcome) {
    var start = 0
    if count == 1 {
      // Most trunk sockets have one datagram at a time, for which this path is shorter.
      let name = UnsafeRawPointer(names).assumingMemoryBound(to: sockaddr.self)
      let done = sendto(
        fd, vectors[0].iov_base, vectors[0].iov_len, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL), name, messages[0].hdr.msg_namelen)
      if done >= 0 {
        outcome.packets &+= 1
        outcome.bytes &+= done
        return
      }
    }
    while start < count {
      let done = Int(clx_sendmmsg(fd, messages + start, UInt32(count - start), Int32(MSG_DONTWAIT)))
      if done > 0 {
        for index in start..<(start + done) { outcome.bytes &+= vectors[index].iov_len }
        outcome.packets &+= done
        start &+= done
      } else if errno == EINTR {
        continue
      } else {
        // An ICMP error of an earlier datagram, or a full buffer: this one is dropped, the rest is tried.
        outcome.refused &+= 1
        start &+= 1
      }
    }
  }
}
