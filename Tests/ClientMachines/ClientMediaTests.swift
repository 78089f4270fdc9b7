import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineDTLS
import TrunklineRTP
import TrunklineSDP

@testable import TrunklineClientMachines

/// What the media of a call says of its band (RFC 7587 §6.1).
@Suite struct ClientMediaTests {
  private func media(_ band: AudioBand) throws -> ClientMedia {
    let address = try #require(SocketAddress("127.0.0.1:4000"))
    let made = ClientMedia.Configuration(localAddresses: [address], identity: try DTLSIdentity())
    var configuration = try #require(made)
    configuration.band = band
    return ClientMedia(configuration: configuration, random: .seeded(1))
  }

  private func described(_ band: AudioBand) throws -> String {
    var media = try media(band)
    var output = ClientMedia.Output()
    media.handle(.offer(generation: 1), at: .zero, into: &output)
    for case .described(let sdp, _) in output.reports { return "\(sdp)" }
    return ""
  }

  @Test func `a wide device limits nothing and says that it captures 16 kHz`() throws {
    let text = try described(.wideband)
    #expect(text.contains("sprop-maxcapturerate=16000") && !text.contains("maxplaybackrate"), "\(text)")
  }

  @Test func `a narrow device says so, as a wide call would be coded for nobody`() throws {
    let text = try described(.narrowband)
    #expect(text.contains("maxplaybackrate=8000") && text.contains("sprop-maxcapturerate=8000"), "\(text)")
  }

  @Test(arguments: AudioBand.allCases) func `frames of another length than 20 ms of the band are nothing`(band: AudioBand) throws
  {
    var media = try media(band)
    var output = ClientMedia.Output()
    media.handle(.activate(isConnected: true), at: .zero, into: &output)
    for count in [0, 1, 159, 161, 319, 321, 4_000] {
      var samples = [Int16](repeating: 7, count: count)
      media.send(captured: samples.span, into: &output)
      var room = samples.mutableSpan
      media.play(into: &room, at: .zero)
      #expect(samples.allSatisfy { $0 == 0 }, "silence")
    }
    #expect(!output.hasDatagrams)
  }
}
