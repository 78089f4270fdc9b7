"""Holds the manifests that a kustomization names against Kubernetes' own schemas, and its other names against what is there.

    kubernetes_files.py Deploy/kubernetes"""

import os, sys
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
assert {row["metadata"]["name"] for row in resources if row["kind"] == "Namespace"} == {kustomization["namespace"]}
