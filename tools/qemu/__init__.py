"""A virtual machine with two emulated NVMe drives, a virtual IOMMU and this machine's own files."""
