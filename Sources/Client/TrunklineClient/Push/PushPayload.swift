import Foundation
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// A push that wakes an app: version 1 of the payload (docs/design/devices-and-push.md). Accepts any bytes.
public struct PushPayload: Sendable, Equatable {
  /// The call that the push is about.
  public var call: Identifier
  /// The caller; `.generic` "Unknown" if the push names none.
  public var caller: Handle
  /// The address to connect to; nil: the phone's own gateway. Always a ws: or wss: address.
  public var gateway: String?
  /// Admits this device for this call, without a login; valid until 30 s after the ring deadline.
  public var wake: Redacted<String>
  /// Seconds since 1970; a hint only: the clock of a device may be wrong.
  public var expires: Int64?
  /// The user's number that was called, and other properties of the call; absent if the caller is sealed, or they do not fit.
  public var details = CallDetails()
  /// The sealed caller, Base64url.
  public var sealed: String?

  /// Longest payload read; APNs carries 5,120 bytes.
  static let longest = 8_192

  /// Reads JSON: the payload itself, or an object that contains it as `payload`. Nil if it names no call or has no wake token.
  public init?(json: some Collection<UInt8>) {
    guard json.count <= Self.longest, let object = try? JSONSerialization.jsonObject(with: Data(json)) as? [String: Any] else {
      return nil
    }
    self.init(object["payload"] as? [String: Any] ?? object)
  }

  private init?(_ fields: [String: Any]) {
    func text(_ key: String, _ most: Int = 256) -> String? {
      (fields[key] as? String).flatMap { $0.utf8.count <= most ? $0 : nil }
    }
    guard let call = text("call").flatMap({ Identifier($0) }), let wake = text("wake", 4_096), !wake.isEmpty else { return nil }
    (self.call, self.wake, sealed) = (call, Redacted(wake), text("enc", 4_096))
    gateway = text("gw", 2_048).flatMap { Self.isAddress($0) ? $0 : nil }
    // FCM carries strings only, so the caller's fields are flat
    let from = fields["from"] as? [String: Any]
    let handle = (from?["h"] as? String ?? text("from_h")).map { String($0.prefix(256)) } ?? ""
    let name = (from?["n"] as? String ?? text("from_n")).map { String($0.prefix(256)) }
    let kind = (from?["k"] as? String ?? text("from_k")).flatMap { Handle.Kind(rawValue: $0) } ?? .phone
    caller =
      handle.isEmpty
      ? Handle(k: .generic, h: "Unknown", n: name) : Handle(k: kind, h: handle, n: name?.isEmpty == true ? nil : name)
    details = Self.details(fields)
    expires = (fields["exp"] as? NSNumber)?.int64Value ?? text("exp").flatMap { Int64($0) }
  }

  private static func details(_ fields: [String: Any]) -> CallDetails {
    let to = fields["to"] as? [String: Any]
    func part(_ key: String) -> String? {
      (to?[key] as? String ?? fields["to_" + key] as? String).map { String($0.prefix(256)) }
    }
    let called = part("h").flatMap { number in
      number.isEmpty ? nil : Handle(k: part("k").flatMap { Handle.Kind(rawValue: $0) } ?? .phone, h: number, n: part("n"))
    }
    var values = fields["parameters"] as? [String: Any]
    // FCM carries strings only
    if let text = fields["parameters"] as? String, text.utf8.count <= longest {
      values = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    }
    let parameters = (values as? [String: String]).flatMap { CallParameters($0) }
    return CallDetails(called: called, parameters: parameters?.isEmpty == true ? nil : parameters)
  }

  /// An invalid address is ignored: the phone's own gateway has the call too, or knows its node.
  private static func isAddress(_ text: String) -> Bool {
    guard let parts = URLComponents(string: text), let host = parts.host else { return false }
    return ["ws", "wss"].contains(parts.scheme) && !host.isEmpty
  }

  /// Reads a notification: its `userInfo`, or an object in it that is named `payload`. Nil: it is not a call.
  public init?(notification userInfo: [AnyHashable: Any]) {
    let fields = userInfo.reduce(into: [String: Any]()) { fields, field in
      if let key = field.key as? String { fields[key] = field.value }
    }
    guard JSONSerialization.isValidJSONObject(fields), let json = try? JSONSerialization.data(withJSONObject: fields) else {
      return nil
    }
    self.init(json: json)
  }

  /// Opens a caller that is sealed for the key in `secrets`; else changes nothing.
  public mutating func openCaller(by secrets: any SecretStore) {
    guard let sealed, let key = secrets.read(SecretKey.sealKey), let caller = SealedCaller.open(sealed, call: call, key: key)
    else { return }
    self.caller = caller
    self.sealed = nil
  }

  /// The payload as a VoIP push carries it.
  public var dictionary: [String: Any] {
    var fields: [String: Any] = ["aps": [String: Any](), "v": 1, "t": "call", "call": "\(call)", "wake": wake.exposed]
    fields["gw"] = gateway
    fields["exp"] = expires
    fields["enc"] = sealed
    if !isAnonymous {
      var from = ["k": caller.k.rawValue, "h": caller.h]
      from["n"] = caller.n
      fields["from"] = from
    }
    if let called = details.called {
      var to = ["k": called.k.rawValue, "h": called.h]
      to["n"] = called.n
      fields["to"] = to
    }
    fields["parameters"] = details.parameters?.values
    return fields
  }

  /// True if the push names no caller: the caller is sealed, or withheld.
  public var isAnonymous: Bool { caller.k == .generic && caller.h == "Unknown" }

  var push: PhoneMachine.Push { .init(call: call, caller: caller, wake: wake.exposed, gateway: gateway, details: details) }
}
