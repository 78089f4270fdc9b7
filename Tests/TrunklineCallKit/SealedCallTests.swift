import Foundation
import Synchronization
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineHPKE

@testable import TrunklineCallKit
@testable @_spi(Fuzzing) import TrunklineClient

/// The notification service extension's part, on the stand-in: which extensions may report, and what the phone then gets.
@Suite(.serialized) struct SealedCallTests {
  private static let call = "8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f11"

  /// Callbacks of iOS to an app that gets a push: the payload, and the result of its extension's report.
  private final class Notes: Sendable {
    private let lines = Mutex<[String]>([])
    func add(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }
  }

  /// An installation's key, and a notification whose caller is sealed for it.
  private func notification(by secrets: MemorySecrets, _ change: (inout [AnyHashable: Any]) -> Void = { _ in }) throws
    -> [AnyHashable: Any]
  {
    let key = try #require(SealedCaller.key(in: secrets, .seeded(1)))
    let publicKey = try #require(HPKE.publicKey(of: key))
    let json = Array(#"{"k":"phone","h":"+15550001","n":"Jane Doe"}"#.utf8)
    let sealed = try #require(
      HPKE.seal(json, for: publicKey, info: Array("trunkline caller v1".utf8), authenticating: Array(Self.call.utf8), scalar: key)
    )
    let text = Data(sealed).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    var fields: [AnyHashable: Any] = [
      "aps": ["alert": "New message", "mutable-content": 1] as [String: Any], "call": Self.call, "wake": "w",
      "gw": "wss://g/v1/connect", "exp": 1_800_000_000, "enc": text, 7: "no text",
    ]
    change(&fields)
    return fields
  }

  /// The extension of an app whose phone reports its pushes.
  private func report(
    _ userInfo: [AnyHashable: Any], by secrets: any SecretStore, _ rules: SystemRules = .strict, isApp: Bool = false
  ) -> (StandInPhone, [String]) {
    let (phone, notes) = (StandInPhone(rules, clock: .virtual), Notes())
    phone.install { CallKitSystemTests.App() }
    let body = {
      SealedCall.report(userInfo, secrets: secrets) { outcome in
        switch outcome {
        case .reported: notes.add("reported")
        case .notACall: notes.add("no call")
        case .refused(let error): notes.add("refused \((error as NSError).code)")
        }
      }
    }
    if isApp {
      phone.launch { CallKitSystemTests.App() }
      phone.inApp(body)
    } else {
      phone.notificationExtension(body)
    }
    phone.advance(.seconds(1))
    return (phone, notes.all)
  }

  @Test func `E2E-1: the extension's report starts the app with a VoIP push, its caller in the clear`() throws {
    let secrets = MemorySecrets()
    let (phone, notes) = report(try notification(by: secrets), by: secrets)
    #expect(notes == ["reported"] && phone.isRunning && phone.violations == [])
    #expect(phone.screen.incoming?.title == "Jane Doe" && phone.screen.incoming?.id == Identifier(Self.call))
  }

  @Test func `E2E-1: not from the app itself, and not without the entitlement: each is said, and nothing is shown`() throws {
    let secrets = MemorySecrets()
    var (phone, notes) = report(try notification(by: secrets), by: secrets, isApp: true)
    #expect(notes == ["refused 1"] && phone.screen.incoming == nil)
    var rules = SystemRules.strict
    rules.hasFilteringEntitlement = false
    (phone, notes) = report(try notification(by: secrets), by: secrets, rules)
    #expect(notes == ["refused 2"] && phone.screen.incoming == nil && !phone.isRunning)
  }

  @Test func `E2E-1: a notification that is no call is left to be shown`() throws {
    let secrets = MemorySecrets()
    for name in ["call", "wake"] {
      let (phone, notes) = report(try notification(by: secrets) { $0[name] = nil }, by: secrets)
      #expect(notes == ["no call"] && phone.screen.incoming == nil, "without \(name)")
    }
    for userInfo: [AnyHashable: Any] in [[:], ["aps": ["alert": "x"]], [1: 2], ["call": Date(), "wake": Data()]] {
      #expect(SealedCall.payload(of: userInfo, secrets: secrets) == nil)
    }
  }

  @Test func `E2E-1: before the first unlock the caller stays sealed, and the call is shown all the same`() throws {
    let (phone, notes) = report(try notification(by: MemorySecrets()), by: MemorySecrets())
    #expect(notes == ["reported"] && phone.screen.incoming?.title == "Unknown")
  }

  @Test func `what the extension reports is what the gateway would have pushed`() throws {
    let secrets = MemorySecrets()
    let payload = try #require(SealedCall.payload(of: try notification(by: secrets), secrets: secrets))
    let json = try JSONSerialization.data(withJSONObject: payload, options: [.sortedKeys, .withoutEscapingSlashes])
    #expect(
      String(decoding: json, as: UTF8.self)
        == #"{"aps":{},"call":"\#(Self.call)","exp":1800000000,"from":{"h":"+15550001","k":"phone","n":"Jane Doe"},"#
        + #""gw":"wss://g/v1/connect","t":"call","v":1,"wake":"w"}"#)
    let nested = try #require(SealedCall.payload(of: ["payload": payload], secrets: secrets))
    #expect(try JSONSerialization.data(withJSONObject: nested, options: [.sortedKeys, .withoutEscapingSlashes]) == json)
  }
}
