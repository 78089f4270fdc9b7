import Logging
import TrunklineBytes
public import TrunklinePlatform

/// Certificates are read when they are set, and again on request; open connections keep those of their handshake.
extension SIPSockets {
  /// Sets certificates for the listeners and toward trunks (by name). A file that cannot be read is logged, and the previous
  /// certificates stay in use.
  public func setTLS(server: TLSServerSettings?, trunks: [String: TLSClientSettings]) {
    loop.preconditionOnThread()
    if let server {
      do throws(TLSFailure) {
        let next = try TLSContext(server: server, previous: serverTLS)
        serverTLS = next
        for failure in next.failures {
          logger.error(
            "listen.sip.tls.certificates: one is not usable; its names get the previous one, or that of listen.sip.tls.cert",
            metadata: ["why": "\(failure)"])
        }
      } catch {
        logger.error(
          "listen.sip.tls: the certificates are not usable",
          metadata: ["why": "\(error)", "old_ones": "\(serverTLS == nil ? "none" : "stay")"])
      }
    }
    var next: [String: (context: TLSContext, settings: TLSClientSettings)] = [:]
    for (name, settings) in trunks {
      do throws(TLSFailure) { next[name] = (try TLSContext(client: settings), settings) } catch {
        logger.error("a trunk's TLS files are not usable", metadata: ["trunk": "\(name)", "why": "\(error)"])
        next[name] = clientTLS[name]
      }
    }
    clientTLS = next
  }
}
