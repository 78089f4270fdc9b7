import AppSessions
import Devices
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// The login token of a device that was turned away, through all the machines.
@Suite struct RevokedScenarioTests {
  private let phone = DeviceKey(user: "alice", device: "phone")

  /// `hello` and `call.start` in one segment, on a new socket.
  private func rush(_ world: World, _ number: UInt64) throws {
    let id = ConnectionID(90_000 + number)
    let exp = Int64(4_000_000_000)
    let token = try World.signer.sign(Claims(sub: phone.user, dev: phone.device, aud: ["trunkline"], exp: exp))
    let start = CallStart(to: Handle(k: .phone, h: "+15557654321"), sdp: "v=0")
    world.tell(.opened(id, .loopback))
    let hello = Hello(.auth(token), device: .init(id: phone.device), caps: ["nodes"])
    world.tell(.frame(id, ClientFrame(.hello(hello), id: Identifier(high: number, low: 1)).encoded()))
    world.tell(
      .frame(
        id,
        ClientFrame(.callStart(start), id: Identifier(high: number, low: 2), seq: 1, call: Identifier(high: number, low: 3))
          .encoded()))
    world.tell(
      .frame(id, ClientFrame(.devicePut(DevicePut(prefs: .init(ring: true))), id: Identifier(high: number, low: 4)).encoded()))
  }

  @Test(arguments: 0..<4 as Range<UInt64>) func `hello and call start in one segment make no call, at any node, however often`(
    _ seed: UInt64
  ) throws {
    let nodes = ManyNodes(2, seed: seed)
    nodes.app("phone", at: 0)
    nodes.run(.seconds(1))
    #expect(nodes.worlds[0].operate { .devices(.revoke(user: phone.user, device: phone.device, $0)) } == .done)
    nodes.run(.seconds(1))
    // a restarted process, which did not receive the revocation
    nodes.kill(1)
    nodes.run(.seconds(3))
    nodes.restart(1)
    nodes.run(.seconds(3))
    for index in 0..<2 {
      for number in 1...2 as ClosedRange<UInt64> {
        try rush(nodes.worlds[index], UInt64(index) * 10 + number)
        nodes.run(.seconds(2))
      }
      #expect(nodes.worlds[index].machine.summaries.isEmpty && nodes.worlds[index].finals.isEmpty, "node \(index)")
      #expect(nodes.worlds[index].sessions.stats.refusals == [.deviceRevoked: 2], "node \(index)")
      #expect(nodes.worlds[index].sessions.connectedCount == 0, "node \(index)")
    }
    #expect(nodes.records.isEmpty)
  }

  @Test func `GET directory asks at every node, also at one that does not know the user yet`() throws {
    let nodes = ManyNodes(2)
    nodes.app("phone", at: 0)
    nodes.run(.seconds(1))
    #expect(nodes.worlds[0].operate { .devices(.revoke(user: phone.user, device: phone.device, $0)) } == .done)
    nodes.kill(1)
    nodes.run(.seconds(3))
    nodes.restart(1)
    nodes.run(.seconds(3))
    for index in 0..<2 {
      let world = nodes.worlds[index]
      let token = try World.signer.sign(Claims(sub: phone.user, dev: phone.device, aud: ["trunkline"], exp: 4_000_000_000))
      world.tell(.httpLogin(HTTPRequestID(1), bearer: token))
      nodes.run(.seconds(1))
      #expect(world.refusedHTTP == [.deviceRevoked()], "node \(index)")
    }
  }
}
