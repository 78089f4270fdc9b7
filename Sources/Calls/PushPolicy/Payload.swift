#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The JSON object that all three services carry. APNs adds an empty `aps`; FCM wants every value as a string.
struct Payload: Encodable {
  struct Caller: Encodable {
    var k: String
    var h: String
    var n: String?
  }
  struct Empty: Encodable {}

  var aps: Empty?
  var v = 1
  var t = "call"
  var call: String
  var exp: Int64
  var acct: String
  var from: Caller?
  var video: Bool
  var gw: String
  var wake: String
  var enc: String?

  /// - Parameter withCaller: false leaves out what is only shown, for a service that finds the whole too large.
  init(_ push: CallPush, withCaller: Bool) {
    (call, exp, acct, video) = (push.call.description, push.deadline, push.account, push.isVideo)
    (gw, wake, enc) = (push.gateway, push.wake.exposed, push.sealedCaller)
    if withCaller, push.sealedCaller == nil {
      from = Caller(
        k: push.handleKind.rawValue, h: String(push.handle.prefix(Limits.handleCharacters)),
        n: push.name.map { String($0.prefix(Limits.nameCharacters)) })
    }
    if !withCaller { enc = nil }
  }

  func json() -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(self)).map { Array($0) } ?? []
  }

  /// FCM's `data`: strings only, and `from` itself is a reserved word there.
  var strings: [String: String] {
    var out = ["v": "\(v)", "t": t, "call": call, "exp": "\(exp)", "acct": acct, "video": "\(video)", "gw": gw, "wake": wake]
    out["enc"] = enc
    if let from {
      (out["from_k"], out["from_h"]) = (from.k, from.h)
      out["from_n"] = from.n
    }
    return out
  }

  /// The largest payload that fits: whole, or without what is only shown.
  static func fitting(_ limit: Int, _ push: CallPush, withCaller: Bool, _ bytes: (Payload) -> [UInt8]) -> [UInt8]? {
    let whole = bytes(Payload(push, withCaller: withCaller))
    if whole.count <= limit { return whole.isEmpty ? nil : whole }
    let bare = bytes(Payload(push, withCaller: false))
    return bare.isEmpty || bare.count > limit ? nil : bare
  }
}
