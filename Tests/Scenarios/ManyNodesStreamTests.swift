import CallFlow
import CallModel
import Cluster
import Testing
import TrunklineBytes

/// Calls that programs have over a WebSocket, among nodes: no user's, and in the shared store as any other.
@Suite struct ManyNodesStreamTests {
  private func world(isOpened: Bool = true) throws -> (nodes: ManyNodes, edge: ManyNodes.EdgeCall, call: CallID) {
    let target = StreamTarget(try #require(StreamURL("wss://bot.example/call")))
    let nodes = ManyNodes { $0.inbound = [.init(trunk: "carrier", target: .stream(target))] }
    let edge = nodes.call(at: 0)
    nodes.run(.milliseconds(300))
    let call = try #require(nodes.worlds[0].machine.summaries.first?.call)
    if isOpened { nodes.worlds[0].give(.stream(.opened(call))) }
    nodes.run(.milliseconds(300))
    #expect((nodes.final(edge) == 200) == isOpened)
    return (nodes, edge, call)
  }

  @Test func `every node finds it in the shared store, and its end takes it off`() throws {
    let (nodes, edge, call) = try world()
    let machine = try #require(nodes.worlds[0].core.cluster)
    let entry = try #require(machine.ownEntry(of: call))
    #expect(entry.users == [] && entry.line.connect != nil && nodes.sharedStore.store.calls(of: machine.incarnation) == [call])
    nodes.worlds[0].now = nodes.now
    nodes.worlds[0].carrier.hangUp(edge.leg)
    nodes.run(.seconds(2))
    #expect(nodes.sharedStore.store.calls(of: machine.incarnation).isEmpty && nodes.records.map(\.call) == [call])
    nodes.checkEnd()
  }

  @Test(arguments: [true, false])
  func `one of a node that dies is closed at its trunk and recorded by another, once`(isOpened: Bool) throws {
    let (nodes, _, call) = try world(isOpened: isOpened)
    let life = try #require(nodes.worlds[0].core.cluster?.incarnation)
    nodes.kill(0)
    nodes.run(.seconds(30))
    #expect(nodes.records.map(\.call) == [call] && nodes.records.first?.end.detail == "node lost")
    #expect(nodes.closed.map(\.call) == [call] && nodes.closed.first?.legs.isEmpty == false)
    #expect(nodes.sharedStore.store.calls(of: life).isEmpty)
  }
}
