import CTrunklineAres
import Glibc
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

/// c-ares's linked lists as values. The lists live until the end of each function.

func readSRV(_ bytes: UnsafeMutablePointer<UInt8>, count: Int32, _ time: Duration) -> DNSAnswer {
  var list: UnsafeMutablePointer<ares_srv_reply>?
  guard ares_parse_srv_reply(bytes, count, &list) == 0 else { return .failed }
  defer { ares_free_data(list) }
  var owned = recordsOfQuestion(UnsafeBufferPointer(start: bytes, count: Int(count)), type: 33)[...]
  var out: [SRVRecord] = []
  var next = list
  while let record = next?.pointee, let isOwned = owned.popFirst() {
    next = record.next
    guard isOwned else { continue }
    out.append(
      SRVRecord(
        priority: record.priority, weight: record.weight, port: record.port, target: record.host.map { String(cString: $0) } ?? ""
      ))
  }
  return out.isEmpty ? .none : .srv(out, timeToLive: time)
}

func readNAPTR(_ bytes: UnsafeMutablePointer<UInt8>, count: Int32, _ time: Duration) -> DNSAnswer {
  var list: UnsafeMutablePointer<ares_naptr_reply>?
  guard ares_parse_naptr_reply(bytes, count, &list) == 0 else { return .failed }
  defer { ares_free_data(list) }
  func text(_ pointer: UnsafeMutablePointer<UInt8>?) -> String { pointer.map { String(cString: $0) } ?? "" }
  var owned = recordsOfQuestion(UnsafeBufferPointer(start: bytes, count: Int(count)), type: 35)[...]
  var out: [NAPTRRecord] = []
  var next = list
  while let record = next?.pointee, let isOwned = owned.popFirst() {
    next = record.next
    guard isOwned else { continue }
    out.append(
      NAPTRRecord(
        order: record.order, preference: record.preference, flags: text(record.flags), service: text(record.service),
        replacement: record.replacement.map { String(cString: $0) } ?? ""))
  }
  return out.isEmpty ? .none : .naptr(out, timeToLive: time)
}

func readAddresses(_ result: UnsafeMutablePointer<ares_addrinfo>?) -> DNSAnswer {
  var out: [IPAddress] = []
  var time = Int32.max
  var next = result?.pointee.nodes
  while let node = next?.pointee, out.count < Limits.records {
    var storage = sockaddr_storage()
    let length = min(Int(node.ai_addrlen), MemoryLayout<sockaddr_storage>.size)
    if let address = node.ai_addr {
      withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: length)) }
      if let ip = withUnsafePointer(to: &storage, { SocketAddress($0) })?.ip, !out.contains(ip) { out.append(ip) }
    }
    time = min(time, node.ai_ttl)
    next = node.ai_next
  }
  var alias = result?.pointee.cnames
  while let name = alias?.pointee {
    time = min(time, name.ttl)
    alias = name.next
  }
  return out.isEmpty ? .none : .addresses(out, timeToLive: .seconds(Int64(max(0, time))))
}
