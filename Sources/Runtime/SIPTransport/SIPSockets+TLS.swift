import Bytes
import Logging
public import Platform

/// Certificates: read when they are set, and again when told to; connections that stand keep what they began with.
extension SIPSockets {
  /// Takes certificates for the listeners and toward trunks (by name). What cannot be read is logged, and what was in use before
  /// stays in use.
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
