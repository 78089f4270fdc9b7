import BenchKit
import Foundation

/// How much later a call rings when its INVITE comes to the wrong node: through an edge that follows the redirect, and, straight
/// from a carrier, through a `call.wake` on the device's socket at the other node. Each kind alternates with a call to a single
/// node and to the right node.
struct LatencyRows {
  let bench: Bench
  let site: Site
  let reactor: Reactor

  private enum Kind: CaseIterable { case alone, local, redirected, woken }

  func all() throws {
    guard bench.mayWant("INVITE") else { return }
    let count = bench.isSmall ? 20 : 1_000
    let users = 50
    bench.progress("\(count) calls of each kind: one node alone, the right node, the wrong one")
    var received: [String: UInt64] = [:]
    func note(_ message: AppSocket.Message) {
      guard message.type == "call.offer" || message.type == "call.wake", let call = message.field("call") else { return }
      if received[call] == nil { received[call] = message.at }
      arrived.append(message.at)
    }
    var arrived: [UInt64] = []
    let atNode = try AppSockets.online(reactor, site, at: site.nodes[1], users: 0..<users)
    let atLone = try AppSockets.online(reactor, site, at: site.alone, users: 0..<users)
    defer { for socket in atNode + atLone { socket.finish() } }
    for socket in atNode + atLone { socket.onMessage = note }
    let edge = try Carrier(reactor, host: Site.edge, isEdgeOf: "carrier")
    let carrier = try Carrier(reactor, host: Site.carrier)
    var times: [Kind: [Double]] = [:]
    var lost = 0
    for index in 0..<count {
      for kind in Kind.allCases.shuffled() {
        arrived = []
        let number = Site.number(index % users)
        let call =
          switch kind {
          case .alone: carrier.call(number, to: site.alone.sip)
          case .local: carrier.call(number, to: site.nodes[1].sip)
          case .redirected: edge.call(number, to: site.nodes[0].sip)
          case .woken: carrier.call(number, to: site.nodes[0].sip)
          }
        let rang = reactor.run(for: 1, until: { !arrived.isEmpty })
        if rang, let at = arrived.first { times[kind, default: []].append(milliseconds(call.began, at)) } else { lost += 1 }
        bench.require((call.redirects == 1) == (kind == .redirected), "a call was redirected \(call.redirects) times")
        (kind == .redirected ? edge : carrier).cancel(call)
        reactor.run(for: 1, until: { call.final != 0 })
        // time for what remains of the call at the nodes and in the shared store
        reactor.run(for: 0.002)
      }
    }
    bench.require(lost == 0, "\(lost) of \(4 * count) calls did not ring")
    report(times)
  }

  private func report(_ times: [Kind: [Double]]) {
    func quantile(_ share: Double, _ kind: Kind) -> Double {
      let sorted = (times[kind] ?? []).sorted()
      return sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }
    for (name, kind) in [
      ("INVITE at the right node → call.offer", Kind.local), ("INVITE at the wrong node → redirect → call.offer", .redirected),
      ("INVITE at the wrong node → call.wake", .woken),
    ] {
      for (label, share) in [("p50", 0.5), ("p99", 0.99)] {
        let (own, alone) = (quantile(share, kind), quantile(share, .alone))
        bench.add(
          BenchRow(
            "\(name), \(label) above one node alone", unit: "ms", ours: BenchFigure("ours", own - alone),
            goal: label == "p99" && kind != .local ? .atMost(5) : nil,
            note: String(format: "%.2f ms; one node alone %.2f ms; %d calls", own, alone, times[kind]?.count ?? 0)))
      }
    }
  }
}

enum AppSockets {
  /// Sockets of listed users that were welcomed. Throws if one was not within 10 s.
  static func online(_ reactor: Reactor, _ site: Site, at node: Node, users: Range<Int>) throws -> [AppSocket] {
    let sockets = try users.map { number in
      AppSocket(reactor, port: node.app, user: Site.user(number), token: try site.token(of: Site.user(number)))
    }
    guard reactor.run(for: 10, until: { sockets.allSatisfy { $0.stage == .welcome } }) else {
      throw BenchError(text: "\(sockets.count { $0.stage != .welcome }) of \(sockets.count) apps are not welcome at \(node.name)")
    }
    // they are in the shared store one round trip later
    reactor.run(for: 0.1)
    return sockets
  }
}
