import Cluster
import Foundation
import SharedStore
import Testing
import TrunklineBytes

/// Each test starts the servers that it needs, on free ports of loopback.
@Suite(.serialized) struct SharedStoreContractTests {
  @Test func `the shared store in memory, which stands for the others in tests on virtual time`() throws {
    let hub = MemoryHub()
    try SharedStoreContract("memory") { name, started in try MemoryNode(name, hub, started: started) }.check()
  }

  @Test func `Redis alone`() throws {
    let redis = try RedisPeer()
    try SharedStoreContract("Redis") { name, started in try RedisNode(name, settings(redis.port), started: started) }.check()
  }

  @Test(arguments: RedisPeer.Bundled.allCases.filter { $0.path != nil })
  func `the oldest server that is accepted, and newer ones of both projects`(_ server: RedisPeer.Bundled) throws {
    let redis = try RedisPeer(server: #require(server.path))
    #expect(redis.say("INFO", "server").contains(server.rawValue))
    try SharedStoreContract("\(server)") { name, started in try RedisNode(name, settings(redis.port), started: started) }.check()
  }

  @Test(.enabled(if: ProcessInfo.processInfo.environment["CI"] != nil, "only where `Scripts/install test` has run"))
  func `each of these servers is there`() {
    #expect(RedisPeer.Bundled.allCases.filter { $0.path == nil } == [])
  }

  @Test func `Redis alone, with signed values`() throws {
    let redis = try RedisPeer()
    var settings = settings(redis.port)
    settings.key = Redacted(Array("a cluster's key of thirty-two bytes".utf8))
    let chosen = settings
    try SharedStoreContract("signed") { name, started in try RedisNode(name, chosen, started: started) }.check()
  }

  @Test func `Redis behind Sentinel`() throws {
    let peers = try SentinelPeers()
    var settings = settings(0)
    settings.servers = .sentinels(peers.sentinels.map { .init("127.0.0.1", $0.port) }, name: SentinelPeers.name)
    let chosen = settings
    try SharedStoreContract("Sentinel") { name, started in try RedisNode(name, chosen, started: started) }.check()
  }

  @Test func `Redis Cluster`() throws {
    let peers = try ClusterPeers()
    var settings = settings(0)
    settings.servers = .cluster([.init("127.0.0.1", peers.nodes[1].port)])
    let chosen = settings
    try SharedStoreContract("Cluster") { name, started in try RedisNode(name, chosen, started: started) }.check()
  }
}
