import AppSessions
import Cluster
import Devices
import RESP
import TrunklineBytes

/// Handles a stored value without our signature that competed with ours: the shared store, which cannot verify it, kept it as the
/// later value or as another node's claim. The request is sent again and names the value to be replaced; if that one has changed
/// meanwhile, the shared store decides as usual.
extension SharedStoreCommand {
  func repair(_ value: RESPValue, from node: Incarnation) -> SharedStoreCommand? {
    guard let request, let keys, let parts = value.elements else { return nil }
    let forged = Self.forged(in: parts, request, keys)
    return forged.isEmpty ? nil : SharedStoreCommand(request, keys, from: node, over: forged)
  }

  private static func forged(in parts: [RESPValue], _ request: SharedStoreRequest, _ keys: SharedStoreKeys) -> [String: [UInt8]] {
    func only(_ value: RESPValue?, _ isGenuine: ([UInt8]) -> Bool) -> [String: [UInt8]] {
      guard let bytes = value?.content, !bytes.isEmpty, !isGenuine(bytes) else { return [:] }
      return ["": bytes]
    }
    func fields(_ value: [RESPValue]?, _ isGenuine: (String, [UInt8]) -> Bool) -> [String: [UInt8]] {
      guard let value else { return [:] }
      var out: [String: [UInt8]] = [:]
      for index in stride(from: 0, to: value.count - 1, by: 2) {
        guard let name = value[index].text, let bytes = value[index + 1].content, !isGenuine(name, bytes) else { continue }
        out[name] = bytes
      }
      return out
    }
    func claim(_ tag: String, _ rest: String = "") -> [String: [UInt8]] {
      guard parts.first?.number == 0 else { return [:] }
      return only(parts.last) { keys.opened(lines: $0, at: keys.key(tag, rest)) != nil }
    }
    switch request {
    case .renew(let lease, _):
      return parts.count < 4 ? [:] : only(parts[3]) { keys.isGenuine($0, at: keys.lease(of: lease.incarnation)) }
    case .enter(let location, _):
      guard parts.count == 5, parts[4].number == 1 else { return [:] }
      let key = location.device
      return only(parts[0]) { keys.isGenuine($0, at: keys.ofUser(key.user, "where"), field: key.device, counted: "t") }
    case .register(let user, _): return fields(parts) { keys.isGenuine($1, at: keys.ofUser(user, "devices"), field: $0) }
    case .putGrants: return fields(parts.last?.elements) { keys.grantLines($1, of: $0) != nil }
    case .claimReaping(let call, let incarnation, _): return claim(SharedStoreKeys.incarnation(incarnation), "reap:\(call)")
    case .claimStart(let call, _, _): return claim(SharedStoreKeys.call(call.description), "start")
    case .lead(let task, _): return claim(SharedStoreKeys.task(task))
    default: return [:]
    }
  }
}
