import Foundation
import Testing

extension Interop {
  /// Deploy/kubernetes, offline.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"))
  struct KubernetesTests {
    /// One gateway, and many.
    @Test(arguments: ["", "/cluster"])
    func `the manifests are valid for Kubernetes, and the kustomization names files that are there`(part: String) async throws {
      let folder = URL(fileURLWithPath: Surroundings.package + "/Deploy/kubernetes" + part)
      let python = try #require(Surroundings.python)
      let checked = try Spawned(
        "kubernetes", python, ["-B", Surroundings.sources + "/peers/kubernetes_files.py", folder.path], in: "/tmp")
      #expect(try await checked.finish(within: 30) == 0, "\(checked.text)")

      // its configuration, with the pod's volumes in a folder
      let pod = NSTemporaryDirectory() + "trunkline-pod-\(getpid())"
      try FileManager.default.createDirectory(atPath: pod, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: pod) }
      let certificate = try Spawned(
        "openssl", "/usr/bin/openssl",
        [
          "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "tls.key", "-out", "tls.crt", "-days", "60", "-subj",
          "/CN=n1",
        ],
        in: pod)
      #expect(try await certificate.finish(within: 20) == 0, "\(certificate.text)")
      for name in ["jwt.key", "cluster.key", "redis.password"] {
        try "0123456789abcdef0123456789abcdef\n".write(toFile: pod + "/" + name, atomically: true, encoding: .utf8)
      }
      try FileManager.default.copyItem(atPath: pod + "/tls.crt", toPath: pod + "/redis-ca.crt")
      try String(contentsOf: folder.appendingPathComponent("trunkline.yaml"), encoding: .utf8)
        .replacing("/etc/trunkline/secrets", with: pod).replacing("/var/lib/trunkline", with: pod)
        .write(toFile: pod + "/trunkline.yaml", atomically: true, encoding: .utf8)
      let check = try Spawned(
        "check", Surroundings.trunkline, ["serve", "--check", "--config", "trunkline.yaml"], in: pod,
        environment: [
          "PUBLIC_IP": "203.0.113.5", "NODE_NAME": "trunkline-0",
          "NODE_URL": "wss://phone.example.com/n/trunkline-0/v1/connect",
        ])
      #expect(try await check.finish(within: 10) == 0, "\(check.text)")
    }
  }
}
