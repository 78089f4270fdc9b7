import Foundation
import HTTP
import JSONWebToken
import Testing
import TrunklineBytes

@testable import PushPolicy

/// A push machine on virtual time, with keys of its own.
struct Rig {
  var machine: PushMachine
  var now = Instant.zero
  var sent: [(attempt: AttemptID, request: HTTPClientRequest)] = []
  var retired: [String] = []
  var reports: [PushReport] = []

  static let unixSeconds: Int64 = 1_800_000_000
  static let token = String(repeating: "0a", count: 32)

  init(apns: Bool = true, fcm: Bool = false, webPush: Bool = false) throws {
    var providers: [any PushProvider] = []
    if apns { providers.append(try Self.apns(keyID: "KEY1")) }
    if fcm { providers.append(FCMProvider(project: "p1", account: "a@p1.example", signer: try Self.signer("KEY1"))) }
    if webPush {
      providers.append(
        WebPushProvider(signer: try Self.signer("KEY1"), publicKey: "BPub", subject: "mailto:ops@example.org"))
    }
    let seeded = RandomSource.seeded(7)
    machine = PushMachine(providers: PushProviders(providers), random: seeded, unixSecondsAtZero: Self.unixSeconds)
  }

  static func apns(keyID: String) throws -> APNsProvider { APNsProvider(.key(try signer(keyID), keyID: keyID, team: "TEAM1")) }
  static func signer(_ keyID: String) throws -> TokenSigner { try TokenSigner(keys: try keys(), kid: keyID) }
  static func keys() throws -> KeySet { try KeySet(.ES256, keyFile: Array(TestKeys.p256.utf8)) }

  mutating func feed(_ input: PushMachine.Input) {
    var actions: [PushMachine.Action] = []
    machine.handle(input, at: now, into: &actions)
    // a deadline that stays in the past stops or spins the loop that waits for it
    if case .timer = input { #expect(machine.nextDeadline.map { $0 > now } ?? true) }
    for action in actions {
      switch action {
      case .send(let attempt, let request, _): sent.append((attempt, request))
      case .retire(let connection): retired.append(connection)
      case .finished(let report): reports.append(report)
      }
    }
  }

  mutating func wake(_ device: String = "d1", call: UInt64 = 1, _ target: PushTarget? = nil, window: Duration = .seconds(45)) {
    feed(.wake(Self.key(device, call), target ?? Self.iPhone, Self.push(call), deadline: now + window))
  }
  mutating func answer(_ status: Int, _ body: String = "", retryAfter: Int? = nil) {
    guard let last = sent.last else { return }
    feed(.answered(last.attempt, HTTPClientResponse(status: status, retryAfter: retryAfter, body: Array(body.utf8))))
  }

  static func key(_ device: String, _ call: UInt64) -> PushKey {
    PushKey(call: Identifier(high: 1, low: call), user: "u1", device: device)
  }
  static var iPhone: PushTarget { PushTarget(.apns, token: token, topic: "org.example.app.voip") }
  static func push(_ call: UInt64, name: String? = "Jane", handle: String = "+15551234567") -> CallPush {
    CallPush(
      call: Identifier(high: 1, low: call), deadline: unixSeconds + 45, handle: handle, name: name,
      gateway: "wss://gw.example/v1/connect",
      wake: "wake-token")
  }
}

extension HTTPClientRequest {
  private var parts: URLComponents { URLComponents(string: url) ?? URLComponents() }
  var host: String { parts.host ?? "" }
  var port: Int? { parts.port }
  var path: String { parts.percentEncodedPath + (parts.percentEncodedQuery.map { "?" + $0 } ?? "") }
}
