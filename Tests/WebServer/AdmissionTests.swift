import Testing
import TrunklineBytes

@testable import WebServer

@Suite struct AdmissionTests {
  private let start = Instant(nanoseconds: 1_000_000_000)
  private func six(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

  @Test func `an IPv6 customer is a /64, and four of them fill a /48`() throws {
    var admission = Admission(perAddress: 3)
    for host in 1...3 { #expect(admission.admit(try six("2001:db8:1:1::\(host)"), at: start) == nil) }
    #expect(admission.admit(try six("2001:db8:1:1:ffff::9"), at: start) == .tooManyFromAddress)
    for net in 2...4 { for host in 1...3 { #expect(admission.admit(try six("2001:db8:1:\(net)::\(host)"), at: start) == nil) } }
    #expect(admission.admit(try six("2001:db8:1:5::1"), at: start) == .tooManyFromAddress)
    #expect(admission.admit(try six("2001:db8:2:1::1"), at: start) == nil)
    admission.release(try six("2001:db8:1:1::1"), at: start)
    #expect(admission.admit(try six("2001:db8:1:1::7"), at: start) == nil)
  }

  @Test func `attempts of one address are bounded by the second, those of others are not touched`() throws {
    var admission = Admission(perAddress: 1)
    let (loud, quiet) = (IPAddress(192, 0, 2, 1), IPAddress(192, 0, 2, 2))
    var taken = 0
    for _ in 0..<1_000 where admission.admit(loud, at: start) == nil {
      taken += 1
      admission.release(loud, at: start)
    }
    #expect(taken == Limits.attemptBurst)
    #expect(admission.admit(loud, at: start) == .tooFast)
    #expect(admission.admit(quiet, at: start) == nil)
    #expect(admission.admit(loud, at: start + .seconds(1)) == nil)
  }

  @Test func `memory is bounded, and addresses that went quiet make room`() {
    var admission = Admission(perAddress: 1)
    var now = start
    for number in 0..<Limits.addresses {
      let address = IPAddress(v4: UInt32(number))
      #expect(admission.admit(address, at: now) == nil)
      admission.release(address, at: now)
    }
    #expect(admission.admit(IPAddress(v4: .max), at: now) == .tooMany)
    now = now + .seconds(5)
    #expect(admission.admit(IPAddress(v4: .max), at: now) == nil)
  }

  @Test func `where the idlest gives way nobody is refused for how many connections he begins`() {
    var admission = Admission(perAddress: 1, boundsAttempts: false)
    for _ in 0..<Limits.attemptBurst * 2 {
      #expect(admission.admit(.loopback, at: .zero) == nil)
      admission.release(.loopback, at: .zero)
    }
    #expect(admission.admit(.loopback, at: .zero) == nil && admission.admit(.loopback, at: .zero) == .tooManyFromAddress)
  }
}
