# Keystone and Glance on a machine of their own, as the books want them to be there already: one administrator, a network
# of operators that reaches both, and an image. Their environments are those of bin/stack.
set -e
bin=/opt/nova-stack/nextdoor/bin
top=/var/lib/next-door
mkdir -p $top/images $top/staging $top/tasks

cat > $top/keystone.conf <<EOF
[DEFAULT]
use_stderr = true
public_endpoint = http://services:5000
[database]
connection = sqlite:///$top/keystone.db
[identity]
password_hash_rounds = 4
[token]
provider = fernet
[fernet_tokens]
key_repository = $top/fernet
[fernet_receipts]
key_repository = $top/receipts
[credential]
key_repository = $top/credentials
EOF
keystone="$bin/keystone-manage --config-file $top/keystone.conf"
$keystone db_sync
for what in fernet_setup credential_setup; do $keystone $what --keystone-user root --keystone-group root; done
OS_BOOTSTRAP_PASSWORD=administrator $keystone bootstrap --bootstrap-region-id RegionOne \
    --bootstrap-admin-url http://services:5000/v3 --bootstrap-public-url http://services:5000/v3 \
    --bootstrap-internal-url http://services:5000/v3
serve() {  # NAME PORT VARIABLE VALUE: Keystone would take words on the command line for its own
    cat > $top/$1-server.py <<EOF
wsgi_app = "$1.wsgi.api:application"
bind = "0.0.0.0:$2"
workers = 2
worker_class = "gthread"
threads = 2
EOF
    systemd-run --quiet --unit=$1 -E GUNICORN_CMD_ARGS="--config $top/$1-server.py" -E "$3=$4" $bin/gunicorn
}
serve keystone 5000 OS_KEYSTONE_CONFIG_FILES $top/keystone.conf

cat > $top/glance-api.conf <<EOF
[DEFAULT]
enabled_backends = local:file
use_stderr = true
worker_self_reference_url = http://services:9292
[database]
connection = sqlite:///$top/glance.db
[glance_store]
default_backend = local
[local]
filesystem_store_datadir = $top/images
[os_glance_staging_store]
filesystem_store_datadir = $top/staging
[os_glance_tasks_store]
filesystem_store_datadir = $top/tasks
[paste_deploy]
config_file = /opt/nova-stack/nextdoor/etc/glance/glance-api-paste.ini
flavor = keystone
[keystone_authtoken]
www_authenticate_uri = http://services:5000
auth_url = http://services:5000
auth_type = password
username = glance
password = glance
user_domain_id = default
project_name = service
project_domain_id = default
EOF
$bin/glance-manage --config-file $top/glance-api.conf db_sync
export OS_AUTH_URL=http://services:5000/v3 OS_USERNAME=admin OS_PASSWORD=administrator OS_PROJECT_NAME=admin \
    OS_USER_DOMAIN_ID=default OS_PROJECT_DOMAIN_ID=default OS_IDENTITY_API_VERSION=3
openstack=/opt/nova-stack/clients/bin/openstack
for n in 1 2 3 4 5 6 7 8 9 10; do $openstack token issue > /dev/null 2>&1 && break; sleep 1; done
$openstack project create --or-show service
$openstack user create --password glance glance
$openstack role add --project service --user glance admin
$openstack service create --name glance image
for interface in public internal admin; do
    $openstack endpoint create --region RegionOne image $interface http://services:9292
done
serve glance 9292 OS_GLANCE_CONFIG_DIR $top
for n in 1 2 3 4 5 6 7 8 9 10; do $openstack image list > /dev/null 2>&1 && break; sleep 1; done
$openstack image create --disk-format qcow2 --container-format bare --public --min-ram 128 --min-disk 1 --file "$1" tiny
