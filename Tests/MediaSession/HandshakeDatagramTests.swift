import Testing
import TrunklineBytes

@testable import TrunklineMediaSession

@Suite struct HandshakeDatagramTests {
  private func read(_ bytes: [UInt8]) -> HandshakeDatagram { bytes.withUnsafeBytes { HandshakeDatagram($0) } }
  private func record(_ body: [UInt8], type: UInt8 = 22, epoch: UInt8 = 0) -> [UInt8] {
    [type, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, 1, UInt8(body.count >> 8), UInt8(body.count & 255)] + body
  }
  private func message(_ type: UInt8, _ body: [UInt8], length: Int? = nil, offset: UInt8 = 0) -> [UInt8] {
    let whole = length ?? body.count
    return [type, UInt8(whole >> 16), UInt8(whole >> 8 & 255), UInt8(whole & 255), 0, 0, 0, 0, offset, 0]
      + [UInt8(body.count >> 8), UInt8(body.count & 255)] + body
  }
  private var hello: [UInt8] { [0xfe, 0xfd] + (1...32).map { UInt8($0) } + [0, 0, 0, 2, 0xc0, 0x2b, 1, 0] }

  @Test func `a ClientHello is told by its random, also in fragments; a flight and a Finished are sound`() {
    let whole = read(record(message(1, hello)))
    #expect(whole.isSound && whole.helloRandom == 27..<59 && !whole.holdsFinished)
    let first = read(record(message(1, Array(hello.prefix(36)), length: hello.count)))
    #expect(first.isSound && first.helloRandom != nil)
    let second = read(record(message(1, Array(hello.dropFirst(36)), length: hello.count, offset: 36)))
    #expect(second.isSound && second.helloRandom == nil)
    let flight = record(message(11, [0, 0, 0])) + record(message(16, [1, 2]) + message(15, [3])) + record([1], type: 20)
    let finished = record([UInt8](repeating: 7, count: 40), epoch: 1)
    let last = read(flight + finished)
    #expect(last.isSound && last.holdsFinished && last.helloRandom == nil)
  }

  @Test func `what no client sends in a handshake is not sound`() {
    let long = message(11, [], length: 20_000)
    for bytes in [
      [], [22], record([]), record(message(2, [1])), record(message(11, [1, 2], length: 1)), record(long),
      record(message(1, Array(hello.prefix(20)))), record([2, 40], type: 21), record([0, 0], type: 23),
      record(message(1, hello)) + [0], Array(record(message(1, hello)).dropLast()), record(Array(message(1, hello).prefix(11))),
      record(message(1, [3, 3] + hello.dropFirst(2))), [22, 3, 3] + record(message(1, hello)).dropFirst(3),
    ] as [[UInt8]] {
      #expect(!read(bytes).isSound, "\(bytes)")
    }
  }

  @Test func `of a server's datagrams those of a server are sound, and none of them of a client`() {
    func read(_ bytes: [UInt8]) -> HandshakeDatagram { bytes.withUnsafeBytes { HandshakeDatagram($0, isFromServer: true) } }
    let flight =
      record(message(2, hello)) + record(message(11, [0, 0, 0]) + message(12, [1])) + record(message(13, [1]) + message(14, []))
    for sound in [record(message(3, [0xfe, 0xff, 0])), flight, record(message(4, [1])) + record([1], type: 20)] {
      #expect(read(sound).isSound && read(sound).helloRandom == nil)
      #expect(!self.read(sound).isSound)
    }
    for other in [
      record(message(1, hello)), record(message(16, [1])), record(message(15, [1])), record(message(0, [])),
      record([2, 40], type: 21),
    ] {
      #expect(!read(other).isSound)
    }
  }

  @Test func `any byte string is read without a trap`() {
    var random = SplitMix64(seed: 8)
    let model = record(message(1, hello)) + record([1], type: 20) + record([UInt8](repeating: 7, count: 40), epoch: 1)
    for _ in 0..<50_000 {
      var bytes = Array(model.prefix(Int(random.next() % UInt64(model.count + 1))))
      for _ in 0..<3 where !bytes.isEmpty {
        bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      let datagram = read(bytes)
      if let range = datagram.helloRandom { #expect(range.upperBound <= bytes.count) }
    }
  }

  @Test func `junk from the app's address does not reach the DTLS thread, and of the rest what a handshake needs`() throws {
    var bench = try Bench()
    bench.prepare()
    let before = bench.handshakes.count
    var junk = record([2, 40], type: 21)
    for _ in 0..<500 { junk.withUnsafeMutableBytes { bench.appDatagram($0) } }
    #expect(bench.handshakes.count == before && bench.output.drainDrops(.malformed) == 500)
    var sound = record(message(1, hello))
    for _ in 0..<500 { sound.withUnsafeMutableBytes { bench.appDatagram($0) } }
    #expect(bench.handshakes.count == before + 100 && bench.output.drainDrops(.overBudget) == 400)
    for _ in 0..<50 { bench.tick() }
    for _ in 0..<500 { sound.withUnsafeMutableBytes { bench.appDatagram($0) } }
    #expect(bench.handshakes.count == before + 150)
  }
}
