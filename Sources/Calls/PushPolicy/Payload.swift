import JSONWebToken
public import TrunklineBytes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The JSON object that all three services carry. APNs adds an empty `aps`; FCM requires every value to be a string.
struct Payload: Encodable {
  struct Caller: Encodable {
    var k: String
    var h: String
    var n: String?
    init(_ kind: CallPush.HandleKind, handle: String, name: String?) {
      (k, h) = (kind.rawValue, String(handle.prefix(Limits.handleCharacters)))
      n = name.map { String($0.prefix(Limits.nameCharacters)) }
    }
    init(_ push: CallPush) { self.init(push.handleKind, handle: push.handle, name: push.name) }
  }
  struct Empty: Encodable {}

  var aps: Empty?
  var v = 1
  var t = "call"
  var call: String
  var exp: Int64
  var acct: String
  var from: Caller?
  var to: Caller?
  var parameters: [String: String]?
  var video: Bool
  var gw: String
  var wake: String
  var enc: String?

  /// - Parameters:
  ///   - withCaller: false leaves out what is only displayed, for a service whose limit the whole exceeds.
  ///   - withParameters: false leaves out the largest part of that.
  init(_ push: CallPush, withCaller: Bool, withParameters: Bool = true) {
    (call, exp, acct, video) = (push.call.description, push.deadline, push.account, push.isVideo)
    (gw, wake) = (push.gateway, push.wake.exposed)
    if withCaller, push.sealedCaller == nil {
      from = Caller(push)
      to = push.called.map { Caller($0.kind, handle: $0.handle, name: $0.name) }
      if withParameters, !push.parameters.isEmpty { parameters = push.parameters }
    }
    if withCaller, push.sealedCaller?.isEmpty == false { enc = push.sealedCaller }
  }

  func json() -> [UInt8] { Self.json(self) }

  fileprivate static func json(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(value)).map { Array($0) } ?? []
  }

  /// FCM's `data`: strings only, and `from` itself is a reserved word there.
  var strings: [String: String] {
    var out = ["v": "\(v)", "t": t, "call": call, "exp": "\(exp)", "acct": acct, "video": "\(video)", "gw": gw, "wake": wake]
    out["enc"] = enc
    if let from {
      (out["from_k"], out["from_h"]) = (from.k, from.h)
      out["from_n"] = from.n
    }
    if let to {
      (out["to_k"], out["to_h"]) = (to.k, to.h)
      out["to_n"] = to.n
    }
    if let parameters { out["parameters"] = String(decoding: Self.json(parameters), as: UTF8.self) }
    return out
  }

  /// The largest payload that fits: whole, without parameters, or without what is only displayed.
  static func fitting(_ limit: Int, _ push: CallPush, withCaller: Bool, _ bytes: (Payload) -> [UInt8]) -> [UInt8]? {
    let whole = bytes(Payload(push, withCaller: withCaller))
    if whole.count <= limit { return whole.isEmpty ? nil : whole }
    let short = bytes(Payload(push, withCaller: withCaller, withParameters: false))
    if short.count <= limit { return short.isEmpty ? nil : short }
    let bare = bytes(Payload(push, withCaller: false))
    return bare.isEmpty || bare.count > limit ? nil : bare
  }
}

extension CallPush {
  /// The content of a `call.wake`: that of a push, with the caller in clear text, as it is sent through the app's own socket.
  public var wakeContent: [UInt8] { Payload(self, withCaller: true).json() }

  /// Seals the caller for the app, if its registration has a key.
  public mutating func sealCaller(for target: PushTarget, _ random: RandomSource) {
    guard let key = target.sealKey else { return }
    let scalar = random.bytes(CallerSealing.keyBytes)
    let json = Payload.json(Payload.Caller(self))
    // If sealing fails, the push has no caller: what was to be sealed is never sent in clear text.
    sealedCaller =
      CallerSealing.seal(caller: json, for: key, call: call.description, scalar: scalar).map { Base64URL.encode($0) } ?? ""
  }
}
