"""Holds the manifests that a kustomization names against Kubernetes' own schemas, and its other names against what is there.

    kubernetes_files.py Deploy/kubernetes"""

import os, re, shutil, subprocess, sys
import kubernetes_validate, yaml

folder = sys.argv[1]
kustomization = yaml.safe_load(open(f"{folder}/kustomization.yaml"))
resources = [row for name in kustomization["resources"] for row in yaml.safe_load_all(open(f"{folder}/{name}"))]
for resource in resources:
    used = kubernetes_validate.validate(resource, "1.31", strict=True)
    print(resource["kind"], resource["metadata"]["name"], "is valid for", used or "1.31")
pod = next(row for row in resources if row["kind"] == "StatefulSet")["spec"]["template"]["spec"]
images = {row["name"] for row in kustomization["images"]}
assert {row["image"] for row in pod["containers"]} == images, images
maps = {row["name"]: row["files"] for row in kustomization["configMapGenerator"]}
for volume in pod["volumes"]:
    if "configMap" in volume:
        for name in maps.pop(volume["configMap"]["name"]):
            assert os.path.exists(f"{folder}/{name}"), name
assert not maps, f"no volume takes {maps}"
if folder.rstrip("/").endswith("cluster"):
    # one pod a machine on its network, one at a time, with time for its calls; name and addresses from the environment
    work = next(row for row in resources if row["kind"] == "StatefulSet")["spec"]
    [rule] = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert pod["hostNetwork"] is True and rule["topologyKey"] == "kubernetes.io/hostname", pod
    assert rule["labelSelector"]["matchLabels"] == work["selector"]["matchLabels"], rule
    assert pod["terminationGracePeriodSeconds"] == (4 * 60 + 5) * 60, pod
    [budget] = [row["spec"] for row in resources if row["kind"] == "PodDisruptionBudget"]
    assert budget["maxUnavailable"] == 1 and budget["selector"] == work["selector"], budget
    given = {row["name"] for row in pod["containers"][0]["env"]}
    text = open(f"{folder}/trunkline.yaml").read()
    taken = set(re.findall(r"env:(\w+)", text))
    assert taken == given == {"NODE_NAME", "NODE_URL", "PUBLIC_IP"}, (taken, given)
    drain = re.search(r"drain: (\d+)h", text)
    assert int(drain[1]) * 3600 < pod["terminationGracePeriodSeconds"], drain
assert {row["metadata"]["name"] for row in resources if row["kind"] == "Namespace"} == {kustomization["namespace"]}

# where there is a kustomize, what it makes of them too
for program in ("kubectl", "kustomize"):
    if shutil.which(program):
        words = [program, "kustomize", folder] if program == "kubectl" else [program, "build", folder]
        made = list(yaml.safe_load_all(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
        for row in made:
            kubernetes_validate.validate(row, "1.31", strict=True)
        assert {row["kind"] for row in made} == {row["kind"] for row in resources} | {"ConfigMap"}, made
        print(program, "builds them")
