import CTrunklineLinux
import Glibc
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

/// The datagrams that one step sends from one socket, in one slab, for one `sendmmsg`.
struct DatagramBatch {
  private struct Entry {
    var range: Range<Int>
    var flow: Flow
    /// Sent from `flow.local`; otherwise the kernel chooses the source.
    var hasSource: Bool
  }
  /// For a socket at all addresses: datagrams are sent from the flow's own.
  private let choosesSource: Bool
  private var slab: [UInt8] = []
  private var entries: [Entry] = []

  init(choosesSource: Bool) { self.choosesSource = choosesSource }

  var isEmpty: Bool { entries.isEmpty }
  var isFull: Bool { entries.count >= Limits.batchDatagrams || slab.count >= Limits.batchBytes }

  mutating func append(_ bytes: [UInt8], _ flow: Flow) {
    let start = slab.count
    slab += bytes
    entries.append(Entry(range: start..<slab.count, flow: flow, hasSource: choosesSource))
  }

  /// Sends all and empties the batch. `failed` gets each flow that was refused, with its `errno` (EAGAIN: the kernel's buffer is
  /// full).
  ///
  /// The next send, to any destination, reports a pending ICMP error of an earlier datagram: so the first refusal of a datagram
  /// empties the socket's error queue (`absorb`) and tries again. If the machine no longer has the flow's address, the kernel
  /// chooses another.
  mutating func send(_ fd: Int32, absorb: () -> Void, failed: (Flow, Int32) -> Void) {
    var next = 0
    var retried = -1
    while next < entries.count {
      let (count, code) = sendSome(fd, from: next)
      if count > 0 {
        next += count
      } else if code == EINTR {
        continue
      } else if retried != next, code != EAGAIN, code != ENOBUFS {
        retried = next
        absorb()
      } else if entries[next].hasSource, code == EINVAL || code == EADDRNOTAVAIL || code == ENETUNREACH || code == ENODEV {
        entries[next].hasSource = false
      } else {
        failed(entries[next].flow, code)
        next += 1
      }
    }
    slab.removeAll(keepingCapacity: true)
    entries.removeAll(keepingCapacity: true)
  }

  /// One system call. All pointers live within the nested closures; the kernel only reads through them, except `len`.
  private mutating func sendSome(_ fd: Int32, from first: Int) -> (count: Int, code: Int32) {
    let part = entries[first..<min(entries.count, first + Limits.batchDatagrams)]
    var addresses = [sockaddr_storage](repeating: sockaddr_storage(), count: part.count)
    var vectors = [iovec](repeating: iovec(), count: part.count)
    var messages = [clx_mmsg](repeating: clx_mmsg(), count: part.count)
    var sources = [clx_source](repeating: clx_source(), count: choosesSource ? part.count : 0)
    return slab.withUnsafeMutableBytes { slab in
      addresses.withUnsafeMutableBufferPointer { addresses in
        vectors.withUnsafeMutableBufferPointer { vectors in
          sources.withUnsafeMutableBufferPointer { sources in
            messages.withUnsafeMutableBufferPointer { messages in
              guard let address = addresses.baseAddress, let vector = vectors.baseAddress, let message = messages.baseAddress
              else { return (0, EINVAL) }
              for (index, entry) in part.enumerated() {
                vector[index].iov_base = slab.baseAddress.map { $0 + entry.range.lowerBound }
                vector[index].iov_len = entry.range.count
                message[index].hdr.msg_namelen = entry.flow.remote.write(to: address + index)
                message[index].hdr.msg_name = UnsafeMutableRawPointer(address + index)
                message[index].hdr.msg_iov = vector + index
                message[index].hdr.msg_iovlen = 1
                guard entry.hasSource, let source = sources.baseAddress else { continue }
                var local = sockaddr_storage()
                _ = entry.flow.local.write(to: &local)
                clx_send_from(&message[index].hdr, source + index, &local)
              }
              let count = clx_sendmmsg(fd, message, UInt32(messages.count), Int32(MSG_NOSIGNAL))
              return (max(0, Int(count)), count < 0 ? errno : 0)
            }
          }
        }
      }
    }
  }
}
