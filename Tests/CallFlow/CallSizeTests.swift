import Testing

@testable import CallFlow
@testable import CallModel

@Suite struct CallSizeTests {
  /// Tables move calls when they grow, and every look at one copies what it holds.
  @Test func `a call has at most 2 KB in the table, and its parts are its only fields beside a few values`() throws {
    let world = Surroundings()
    let (_, id) = try world.connected()
    let call = try #require(world.machine.calls[id])
    #expect(Mirror(reflecting: call).children.count <= 28)
    #expect(MemoryLayout<Call>.size <= 2_048, "\(MemoryLayout<Call>.size) bytes")
  }
}
