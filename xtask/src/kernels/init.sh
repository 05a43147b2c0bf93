#!/bin/busybox sh
# The first process of the machine: its own devices, this machine's files below a
# layer that is thrown away, control groups of version 2 alone, and the tests.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
# The topmost group may do what no other may; a person's programs are never in it.
say() { echo "kernels: $*"; echo "$*" > /results/failed; }
for module in /modules/*.ko; do
    insmod "$module" || echo "kernels: $module was not loaded"
done
share=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o $share results /results || echo 'kernels: no place for results'
mount -t 9p -o $share,ro,cache=loose files /files || say 'the files of this machine cannot be mounted'
mount -t ext4 /dev/vda /disk || say 'the disk cannot be mounted'
mkdir -p /disk/upper /disk/work /disk/tmp /disk/kept
chmod 1777 /disk/tmp /disk/kept
mount -t overlay -o lowerdir=/files,upperdir=/disk/upper,workdir=/disk/work root /root ||
    say 'no root can be made'
mount --move /dev /root/dev
mkdir -p /root/dev/pts /root/dev/shm /root/run
mount -t devpts devpts /root/dev/pts
mount -t tmpfs shm /root/dev/shm
mount -t proc proc /root/proc
mount -t sysfs sys /root/sys
mount -t cgroup2 groups /root/sys/fs/cgroup
mount -t tmpfs run /root/run
# A checkout below a directory that is hidden here is put back where it was; with another
# machine's files it was never among them.
here=$(cat /results/here)
if grep -qx here /sys/bus/virtio/drivers/9pnet_virtio/*/mount_tag; then
    mkdir /disk/here /disk/here-work
    mount -t 9p -o $share,ro,cache=loose here /here || say 'the checkout cannot be mounted'
    mount -t overlay -o lowerdir=/here,upperdir=/disk/here,workdir=/disk/here-work here /here ||
        say 'the checkout cannot be written to'
else
    mount --bind "/root$here" /here || say 'the checkout cannot be held'
fi
# An overlay, as the root is one, has no owners translated.
mount --bind /disk/tmp /root/tmp
mount --bind /disk/kept /root/var/tmp
if [ ! -e "/root$here" ]; then
    mkdir -p "/root$here"
    mount --bind /here "/root$here" || say 'the checkout cannot be put back'
fi
umount /here
mkdir /root/run/results /root/sys/fs/cgroup/person
mount --bind /results /root/run/results
ifconfig lo 127.0.0.1 up
umount /proc /sys
# A root directory of one's own by chroot would forbid user namespaces.
exec switch_root /root /bin/sh /run/results/tests.sh
