import HTTP
import JSONWebToken
import PushPolicy
import TrunklineBytes

/// The gateway's push machine before an APNs that takes everything, and notes by which provider token.
final class ScriptedAPNs {
  /// Of every push, in order, and when each new one was first used: seconds of the world.
  private(set) var tokens: [String] = []
  private(set) var issued: [Int64] = []
  private(set) var connections: Set<String> = []
  private var machine: PushMachine

  /// Made for this test; protects nothing.
  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg1KnRB0wd1astiy4C
    wDATewjZvav+JIma5TUHrRXWi7+hRANCAATrVFCUOrNezLD1b4OfY4YDdiEyFNwR
    Ebf9D3cfu1s2bKbHbSdE3GUPFHrrUW8VvbmWRuRfOVmzFilEqlOytLOc
    -----END PRIVATE KEY-----
    """

  init(_ world: World) throws {
    let signer = try TokenSigner(keys: KeySet(.ES256, keyFile: Array(Self.key.utf8)), kid: "KEY1")
    machine = PushMachine(
      providers: PushProviders([APNsProvider(.key(signer, keyID: "KEY1", team: "TEAM1"))]), random: .seeded(7),
      unixSecondsAtZero: World.epoch)
    world.pushSender = { [self] key, target, content in
      feed(.wake(key, target, content, deadline: world.now + .seconds(45)), world)
    }
  }

  private func feed(_ input: PushMachine.Input, _ world: World) {
    var actions: [PushMachine.Action] = []
    machine.handle(input, at: world.now, into: &actions)
    for action in actions {
      switch action {
      case .send(let attempt, let request, _):
        note(request, at: world.now.nanoseconds / 1_000_000_000)
        world.after(.milliseconds(40)) { [self, unowned world] in
          feed(.answered(attempt, HTTPClientResponse(status: 200)), world)
        }
      case .finished(let report): world.give(.pushed(report))
      case .retire: break
      }
    }
  }

  private func note(_ request: HTTPClientRequest, at second: Int64) {
    connections.insert(request.connection)
    let token = request.header("authorization") ?? ""
    if tokens.last != token { issued.append(second) }
    tokens.append(token)
  }
}
