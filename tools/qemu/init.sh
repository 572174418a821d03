#!/bin/busybox sh
# The guest's first process. It loads modules, puts the host's files under a layer in memory that
# takes all writes, runs `/command` in there, and says how that ended. Any error here ends the guest
# with a kernel panic, which QEMU prints. The kernel's command line sets $drives.
set -e
export PATH=/bin
/bin/busybox mkdir -p /proc /sys /dev /host /layers /guest
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev

while read -r module; do
    insmod "/modules/$module"
done < /modules/order

# The host's files do not change while the guest runs, as far as it can tell: everything is cached.
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=512000 host /host
mount -t tmpfs tmpfs /layers
mkdir /layers/upper /layers/work
mount -t overlay -o lowerdir=/host,upperdir=/layers/upper,workdir=/layers/work overlay /guest

mount -t proc proc /guest/proc
mount -t sysfs sysfs /guest/sys
mount -t devtmpfs devtmpfs /guest/dev
mkdir -p /guest/dev/pts /guest/dev/shm
mount -t devpts devpts /guest/dev/pts
mount -t tmpfs tmpfs /guest/dev/shm
mount -t tmpfs tmpfs /guest/run
cp /command /guest/run/command

until [ "$(ls -d /sys/block/nvme*n1 | wc -l)" = "$drives" ]; do
    sleep 0.1
done
ulimit -l unlimited

echo QEMU-GUEST-START
# Programs see a pipe, and no terminal that has colours and a width.
{
    status=0
    chroot /guest /bin/sh /run/command < /dev/null || status=$?
    dmesg -n 1  # no message of the kernel splits the next line
    printf '\nQEMU-GUEST-STATUS %s\n' "$status"
} 2>&1 | cat
stty opost  # waits until the console has sent everything
poweroff -f
