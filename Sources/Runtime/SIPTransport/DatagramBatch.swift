import Bytes
import CLinux
import Glibc
import Platform
import SIPDialogs

/// The datagrams that one turn sends from one socket, in one slab, for one `sendmmsg`.
struct DatagramBatch {
  private struct Entry {
    var range: Range<Int>
    var flow: Flow
  }
  private var slab: [UInt8] = []
  private var entries: [Entry] = []

  var isEmpty: Bool { entries.isEmpty }
  var isFull: Bool { entries.count >= Limits.batchDatagrams || slab.count >= Limits.batchBytes }

  mutating func append(_ bytes: [UInt8], _ flow: Flow) {
    let start = slab.count
    slab += bytes
    entries.append(Entry(range: start..<slab.count, flow: flow))
  }

  /// Sends all and empties the batch. `failed` gets each flow that was refused, with its `errno` (EAGAIN: the kernel's buffer is
  /// full).
  ///
  /// A pending ICMP error of an earlier datagram is reported by the next send, whoever that is for: so the first refusal of a
  /// datagram empties the socket's error queue (`absorb`) and tries once more.
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
      } else {
        failed(entries[next].flow, code)
        next += 1
      }
    }
    slab.removeAll(keepingCapacity: true)
    entries.removeAll(keepingCapacity: true)
  }

  /// One system call. All pointers live within the nested closures; the kernel only reads through them, but for `len`.
  private mutating func sendSome(_ fd: Int32, from first: Int) -> (count: Int, code: Int32) {
    let part = entries[first..<min(entries.count, first + Limits.batchDatagrams)]
    var addresses = [sockaddr_storage](repeating: sockaddr_storage(), count: part.count)
    var vectors = [iovec](repeating: iovec(), count: part.count)
    var messages = [clx_mmsg](repeating: clx_mmsg(), count: part.count)
    return slab.withUnsafeMutableBytes { slab in
      addresses.withUnsafeMutableBufferPointer { addresses in
        vectors.withUnsafeMutableBufferPointer { vectors in
          messages.withUnsafeMutableBufferPointer { messages in
            guard let address = addresses.baseAddress, let vector = vectors.baseAddress, let message = messages.baseAddress else {
              return (0, EINVAL)
            }
            for (index, entry) in part.enumerated() {
              vector[index].iov_base = slab.baseAddress.map { $0 + entry.range.lowerBound }
              vector[index].iov_len = entry.range.count
              message[index].hdr.msg_namelen = entry.flow.remote.write(to: address + index)
              message[index].hdr.msg_name = UnsafeMutableRawPointer(address + index)
              message[index].hdr.msg_iov = vector + index
              message[index].hdr.msg_iovlen = 1
            }
            let count = clx_sendmmsg(fd, message, UInt32(messages.count), Int32(MSG_NOSIGNAL))
            return (max(0, Int(count)), count < 0 ? errno : 0)
          }
        }
      }
    }
  }
}
